"""flagd's flag definitions: variants, and targeting in JSONLogic that selects one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired

from fido2 import cbor
from mmh3 import hash as murmur3
from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from flagadmin.core import errors
from importer.converting.conditions import MAX_DEPTH, All, Condition, Unsupported
from importer.converting.files import validate
from importer.converting.flags import (
    Flag,
    Outcome,
    Result,
    Rule,
    Share,
    Source,
    Split,
    find_outcome,
    is_boolean,
)
from importer.converting.json_logic import Logic, list_branches, split_operation
from importer.converting.strategies import pick_share

NAME, TITLE = "flagd", "flagd"
USER = "targetingKey"
NULLABLE = {"starts_with", "ends_with", "sem_ver", "fractional"}
"""Operators that yield nothing, and so the default variant, for a variable that is absent or of another type."""
MAX_RULES = 200
HASHES_TEXT = (
    "Who changes is computed for evaluators that hash text. Those since 2026 hash CBOR: convert flagd-cbor."
)
Hash = Callable[..., int]


class FlagDefinition(TypedDict):
    key: NotRequired[str]
    state: Literal["ENABLED", "DISABLED"]
    variants: Annotated[dict[str, Any], Field(min_length=1)]
    defaultVariant: NotRequired[str | bool | None]
    targeting: NotRequired[dict[str, Any] | None]
    metadata: NotRequired[dict[str, Any] | None]


class Definitions(TypedDict):
    flags: dict[str, FlagDefinition]


_DEFINITIONS = TypeAdapter(Definitions)


def recognize(document: Any) -> bool:
    flags = document.get("flags") if isinstance(document, dict) else None
    listed = flags.values() if isinstance(flags, dict) else flags if isinstance(flags, list) else ()
    first = next(iter(listed), None)
    return isinstance(first, dict) and "state" in first and "variants" in first


def read(document: Any, environment: str) -> Source:
    """Raises ValidationError."""
    return _read(document, hash_text)


def read_hashing_cbor(document: Any, environment: str) -> Source:
    """The same for evaluators since 2026, which hash CBOR. The file does not show the difference."""
    return _read(document, hash_cbor)


def hash_text(prefix: str, identifier: str, *, is_list: bool) -> int:
    return murmur3(prefix + identifier, 0, False)


def hash_cbor(prefix: str, identifier: str, *, is_list: bool) -> int:
    """``is_list``: both are hashed as a list, instead of one text."""
    return murmur3(cbor.encode([prefix, identifier] if is_list else prefix + identifier), 0, False)


def _read(document: Any, hash_user: Hash) -> Source:
    repeated: list[Flag] = []
    if isinstance(document, dict) and isinstance(document.get("flags"), list):
        document = {**document, "flags": _group_by_key(document["flags"], repeated)}
    flags = validate(_DEFINITIONS, document)["flags"]
    refs = document.get("$evaluators")
    flag_set = document.get("metadata")
    shared = flag_set if isinstance(flag_set, Mapping) else {}
    read_flags = [
        _FlagReader(key, definition, refs if isinstance(refs, Mapping) else {}, hash_user).read(shared)
        for key, definition in flags.items()
    ]
    notes = (HASHES_TEXT,) if hash_user is hash_text and any(flag.splits for flag in read_flags) else ()
    return Source(TITLE, [*read_flags, *repeated], {USER: "userId"}, notes=notes)


def _group_by_key(flags: Sequence[Any], repeated: list[Flag]) -> dict[str, Any]:
    """The first flag for each key. Others, possibly of another flag set, become ``repeated``."""
    by_key: dict[str, Any] = {}
    for index, flag in enumerate(flags):
        key = flag.get("key") if isinstance(flag, dict) else None
        if not isinstance(key, str):
            raise errors.ValidationError.at(f"flags[{index}].key", "is required and must be a string")
        if key in by_key:
            repeated.append(Flag(key, f"flags[{index}]"))
        by_key.setdefault(key, flag)
    return by_key


class _FlagReader:
    def __init__(
        self, key: str, definition: FlagDefinition, refs: Mapping[str, Any], hash_user: Hash
    ) -> None:
        self.hash_user = hash_user
        self.definition = definition
        self.values = definition["variants"]
        self.is_boolean = is_boolean(self.values)
        self.flag = Flag(key, f"flags.{key}", values={} if self.is_boolean else self.values)
        self.logic = Logic(_find_field, {"$flagd.flagKey": key}, "$flagd.timestamp", refs)
        self.rules: list[Rule] = []

    def read(self, shared: Mapping[str, Any]) -> Flag:
        flag, definition = self.flag, self.definition
        flag.enabled = definition["state"] == "ENABLED"
        metadata = {**shared, **(definition.get("metadata") or {})}
        flag.description = str(metadata.get("description") or "")
        try:
            self._read_targeting(definition.get("targeting") or None)
        except Unsupported as error:
            flag.add_missing("targeting", str(error))
        flag.rules = self.rules
        for name in sorted(self.logic.truths):
            flag.add_difference(
                "truth", f"{name} counts as true only if it is true: in flagd, any value but 0 does."
            )
        return flag

    def _read_targeting(self, targeting: Any) -> None:
        if targeting is not None:
            self._read_result(targeting, ())
        self._add(self._read_default(), (), "Default")

    def _read_default(self) -> Outcome:
        name = self.definition.get("defaultVariant")
        return Result.OFF if name is None or name == "" else self._find_outcome(name)

    def _find_outcome(self, name: Any) -> Outcome:
        """Finds the outcome for a variant in the targeting."""
        if name is None:
            return self._read_default()
        return find_outcome(name, self.values, noun="variants")

    def _read_result(self, result: Any, guards: tuple[Condition, ...]) -> None:
        """Adds the rules of an expression that yields a variant, under the guards of the enclosing ones."""
        if len(guards) > MAX_DEPTH:
            raise Unsupported(f"Its targeting is nested deeper than {MAX_DEPTH} levels.")
        if not isinstance(result, Mapping):
            self._add(self._find_outcome(result), guards)
            return
        operator, arguments = split_operation(result)
        if operator == "$ref":
            self._read_result(self.logic.ref(arguments), (*guards, All()))
        elif operator in ("if", "?:"):
            for when, then in list_branches(arguments):
                condition = () if when is None else (self.logic.read_condition(when),)
                self._read_result(then, (*guards, *condition))
        elif operator == "fractional":
            self._add(self._split(arguments), guards)
            if not self.is_boolean:  # contexts without the hashed field
                self._add(self._read_default(), guards)
        else:
            self._read_truth(operator, result, guards)

    def _read_truth(self, operator: str, result: Any, guards: tuple[Condition, ...]) -> None:
        """Reads a true-or-false expression, which selects the variants with these names."""
        self._add(self._find_outcome(True), (*guards, self.logic.read_condition(result)))
        if operator in NULLABLE and self._read_default() != self._find_outcome(False):
            raise Unsupported(
                f"Without the variable, its {operator} gives the default variant, and else false."
            )
        self._add(self._find_outcome(False), guards)

    def _add(self, outcome: Outcome | Split, guards: tuple[Condition, ...], title: str = "") -> None:
        if len(self.rules) >= MAX_RULES:
            raise Unsupported(f"It has more than {MAX_RULES} rules.")
        self.rules.append(Rule(outcome, All(guards), title))

    # Percentages -----------------------------------------------------------------------------------------------

    def _split(self, arguments: Sequence[Any]) -> Split:
        prefix, variable, entries = self.flag.name, USER, list(arguments)
        is_list = not entries or isinstance(entries[0], list)
        if not is_list:
            prefix, variable = self._read_bucket(entries.pop(0))
        shares = tuple(map(self._read_share, entries))
        total = int(sum(share.weight for share in shares))
        if not 0 < total < 2**31:
            raise Unsupported("The weights of its fractional must be above 0 in all.")

        def pick(identifier: str) -> Outcome:
            position = (self.hash_user(prefix, identifier, is_list=is_list) * total) >> 32
            return pick_share(shares, position)

        return Split(shares, _find_field(variable), pick)

    def _read_bucket(self, expression: Any) -> tuple[str, str]:
        """Reads the hashed prefix, and the variable."""
        operator, arguments = split_operation(expression) if isinstance(expression, Mapping) else ("", [])
        parts = arguments if operator == "cat" else [expression]
        *texts, last = parts or [None]
        prefix = "".join(map(self._read_text, texts))
        if not (isinstance(last, Mapping) and list(last) == ["var"] and isinstance(last["var"], str)):
            raise Unsupported("Its fractional hashes something else than a variable after constants.")
        return prefix, last["var"]

    def _read_text(self, part: Any) -> str:
        value = self.logic.constants.get(part["var"]) if isinstance(part, Mapping) and "var" in part else part
        if not isinstance(value, str):
            raise Unsupported("Its fractional hashes several variables.")
        return value

    def _read_share(self, entry: Any) -> Share:
        if not isinstance(entry, list) or not 1 <= len(entry) <= 2:
            raise Unsupported("An entry of its fractional is not a variant with its weight.")
        weight = entry[1] if len(entry) == 2 else 1
        if isinstance(weight, bool) or not isinstance(weight, int):
            raise Unsupported("A weight of its fractional is not an integer.")
        return Share(self._find_outcome(entry[0]), max(0, weight))


def _find_field(variable: str) -> str:
    """The context field of a variable. The time is only used in comparisons, as the clock."""
    return "userId" if variable == USER else variable
