"""A flag of another product in a common form: ordered rules, the first matching one of which decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from importer.converting.conditions import ALWAYS, Condition, Unsupported
from importer.converting.files import format_text


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
    """Shares selected by a hash of a context field. ``pick`` returns the source's outcome, by its hash.

    If paused, a share that is on applies to no user, unless another share is on too.
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
    """``values`` are the variants' values, by name; empty if the flag is only on or off.

    ``differences`` describe changes by the conversion; ``missing`` describes parts without an equivalent, which
    prevent it.
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
    """All flags of a file. ``renamed`` are the context fields with another name here, by their original name."""

    product: str
    flags: list[Flag]
    renamed: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def find_outcome(name: Any, values: dict[str, Any], *, noun: str) -> Outcome:
    """The outcome of a variation in a rule: on or off for a boolean flag, otherwise the variant.

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


MAX_SHOWN = 50


def find_name(values: Mapping[str, Any], value: Any) -> str | None:
    """The name of a value, compared as JSON: 1 is not true."""
    return next((name for name, known in values.items() if _is_same(known, value)), None)


def add_value(values: dict[str, Any], value: Any) -> str:
    """The name of a value. Adds the value if it is new."""
    name = find_name(values, value)
    if name is None:
        name = make_name(value, values)
        values[name] = value
    return name


def make_name(value: Any, taken: Mapping[str, Any]) -> str:
    """The value itself if it is a short text, and a number otherwise."""
    text = format_text(value) if isinstance(value, str | int | float) else ""
    name = text if 0 < len(text) <= MAX_SHOWN else f"value-{len(taken) + 1}"
    return name if name not in taken else f"{name}-{len(taken) + 1}"


def _is_same(left: Any, right: Any) -> bool:
    return isinstance(left, bool) is isinstance(right, bool) and left == right


FNV_BASIS, FNV_PRIME = 0x811C9DC5, 0x01000193


def hash_fnv1a_32(text: str, *, encoding: str = "utf-16-le") -> int:
    """FNV-1a of the UTF-16 code units of a text, as in JavaScript, or of its bytes in another encoding."""
    data = text.encode(encoding, "surrogatepass")
    units = memoryview(data).cast("H") if encoding == "utf-16-le" else data
    value = FNV_BASIS
    for unit in units:
        value = ((value ^ unit) * FNV_PRIME) & 0xFFFFFFFF
    return value
