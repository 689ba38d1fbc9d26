"""A flag of another product, as all of them are read: ordered rules, of which the first that holds decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from importer.converting.conditions import ALWAYS, Condition, Unsupported


class Result(Enum):
    """An outcome of a rule that is not one of the flag's variants."""

    OFF = "off"
    ON = "on, without a variant"
    NEXT = "what the next rule gives"


Outcome = str | Result
"""The name of a variant, or a result without one."""


@dataclass(frozen=True, slots=True)
class Share:
    outcome: Outcome
    weight: float


@dataclass(frozen=True, slots=True)
class Split:
    """Shares that are chosen by a hash of a context field. ``pick`` gives the outcome in the source, as it hashes.

    If it is paused, a share that is on is on for nobody, as long as another is not.
    """

    shares: tuple[Share, ...]
    field: str
    pick: Callable[[str], Outcome] | None = None
    is_paused: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    outcome: Outcome | Split
    when: Condition = ALWAYS
    title: str = ""


@dataclass(frozen=True, slots=True)
class Parent:
    """A flag that must be on, or off, for another to be on. Without ``variants``, any will do."""

    flag: str
    enabled: bool = True
    variants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """Something that the reader should know about a flag. ``kind`` is a word for programs."""

    kind: str
    sentence: str


@dataclass(slots=True)
class Flag:
    """``values`` are those of its variants, by name; empty if it is only on or off.

    ``differences`` say what is not the same after the conversion; ``missing`` what has no equivalent, so that the flag
    cannot be converted.
    """

    name: str
    path: str
    rules: list[Rule] = field(default_factory=list)
    enabled: bool = True
    values: dict[str, Any] = field(default_factory=dict)
    parents: list[Parent] = field(default_factory=list)
    description: str = ""
    tags: list[str] = field(default_factory=list)
    type: str = "release"
    archived: bool = False
    differences: list[Note] = field(default_factory=list)
    missing: list[Note] = field(default_factory=list)

    @property
    def splits(self) -> list[Split]:
        return [rule.outcome for rule in self.rules if isinstance(rule.outcome, Split)]

    def add_difference(self, kind: str, sentence: str) -> None:
        self.differences.append(Note(kind, sentence))

    def add_missing(self, kind: str, sentence: str) -> None:
        self.missing.append(Note(kind, sentence))


@dataclass(frozen=True, slots=True)
class Source:
    """All flags of a file. ``renamed`` are the context fields that have another name here, by their name there."""

    product: str
    flags: list[Flag]
    renamed: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def find_outcome(name: Any, values: dict[str, Any], *, noun: str) -> Outcome:
    """Finds the outcome of a variation that a rule names: that a boolean flag is on or off, or the variant.

    Raises Unsupported for another name.
    """
    text = str(name).lower() if isinstance(name, bool) else str(name)
    if text not in values:
        raise Unsupported(f"It names {text[:60]}, which is not among its {noun}.")
    if is_boolean(values):
        return Result.ON if values[text] else Result.OFF
    return text


def is_boolean(values: dict[str, Any]) -> bool:
    return all(isinstance(value, bool) for value in values.values())
