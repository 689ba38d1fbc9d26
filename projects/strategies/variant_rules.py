"""Normalizes and validates the variants of strategies and flag environments."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from flagadmin.core.errors import Problem
from flagadmin.core.unreadable_values import UnreadableValue
from flagadmin.core.wording import choices, clip
from playground.engine.coercion import objects_of
from playground.engine.definitions import VariantDefinition

_BEFORE_LETTERS = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789"
_RANKS = {ord(character): rank for rank, character in enumerate(_BEFORE_LETTERS)}


def make_variant_sort_key(name: str) -> tuple[str, str, str, str]:
    """A key that sorts names alphabetically: punctuation, digits, letters; ``alpha`` before ``Beta``.

    Compares names without case and accents first. Among equal names, those without accents come first, then those in
    lower case. Letters of other scripts and symbols follow ``z`` by code point.
    """
    decomposed = name if name.isascii() else unicodedata.normalize("NFD", name)
    marks = "" if name.isascii() else "".join(filter(unicodedata.combining, decomposed))
    base = "".join(c for c in decomposed if not unicodedata.combining(c)) if marks else decomposed
    return base.lower().translate(_RANKS), marks, base.swapcase(), name


TOTAL_WEIGHT = 1000
WEIGHT_TYPES = ("variable", "fix")
PAYLOAD_TYPES = ("json", "csv", "string", "number")


def make_variants(
    values: Sequence[Mapping[str, Any]], stored: Sequence[Mapping[str, Any]] = ()
) -> list[VariantDefinition]:
    """Variants as stored: sorted by name (``make_variant_sort_key``), with weights that add up to 1000.

    ``fix`` variants keep their weight. ``variable`` ones share the rest evenly; if it does not divide, the
    first ones in the given order get one more each. A list that is sent back unchanged keeps its order and
    weights, so that no user's variant changes: one that equals ``stored``, however that was computed, or one
    that is already normalized. Invalid lists keep their weights, so that problems name the given values.
    """
    variants = [_make_variant(variant) for variant in values]
    if _list_shares(variants) == _list_shares(objects_of(stored)):
        return variants
    in_order = sorted(variants, key=lambda variant: make_variant_sort_key(variant["name"]))
    if in_order != variants or not _is_shared_out(variants):
        _spread_weights(variants)
    return in_order


def _list_shares(variants: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    return [(variant.get("name"), variant.get("weightType"), variant.get("weight")) for variant in variants]


def _is_shared_out(variants: Sequence[Mapping[str, Any]]) -> bool:
    shares = [variant["weight"] for variant in variants if variant.get("weightType") == "variable"]
    total = sum(variant["weight"] for variant in variants)
    return total == TOTAL_WEIGHT and bool(shares) and max(shares) - min(shares) <= 1


def _spread_weights(variants: Sequence[VariantDefinition]) -> None:
    variable = [variant for variant in variants if variant.get("weightType") == "variable"]
    rest = TOTAL_WEIGHT - sum(v["weight"] for v in variants if v.get("weightType") != "variable")
    if not variable or rest < 0:
        return
    share, left_over = divmod(int(rest), len(variable))
    for index, variant in enumerate(variable):
        variant["weight"] = share + (index < left_over)


def _make_variant(values: Mapping[str, Any]) -> VariantDefinition:
    document: Any = {
        key: values[key]
        for key in ("name", "weight", "weightType", "stickiness")
        if values.get(key) is not None
    }
    if (weight := document["weight"]) == int(weight):
        document["weight"] = int(weight)  # SDKs reject the whole response if a weight is written as 500.0
    document.setdefault("stickiness", "default")
    if (payload := values.get("payload")) is not None:
        document["payload"] = {"type": payload["type"], "value": payload["value"]}
    if values.get("overrides") is not None:
        document["overrides"] = [
            {"contextName": override["contextName"], "values": list(override["values"])}
            for override in values["overrides"]
        ]
    return document


def variants_problems(
    variants: Sequence[Mapping[str, Any]], path: str, *, in_percent: bool = False
) -> Iterator[Problem]:
    """Problems of a list of variants as given. An empty list is valid.

    ``in_percent`` words the messages for forms, which have percentages instead of weights out of 1000.
    """
    seen: set[str] = set()
    for index, variant in enumerate(variants):
        variant_path = f"{path}[{index}]"
        if not variant["name"]:
            yield Problem(f"{variant_path}.name", "a name is required")
        elif variant["name"] in seen:
            yield Problem(f"{variant_path}.name", f"variant {variant['name']} is listed more than once")
        seen.add(variant["name"])
        yield from _weight_problems(variant, variant_path)
        yield from payload_problems(variant.get("payload"), f"{variant_path}.payload")
        yield from _override_problems(variant.get("overrides") or [], f"{variant_path}.overrides")
    yield from (_percent_problems if in_percent else _total_problems)(variants, path)


def _weight_problems(variant: Mapping[str, Any], path: str) -> Iterator[Problem]:
    weight = variant["weight"]
    if not 0 <= weight <= TOTAL_WEIGHT:
        yield Problem(f"{path}.weight", f"must be a number from 0 to {TOTAL_WEIGHT}, not {weight}")
    elif weight != int(weight) and variant.get("weightType") != "variable":
        yield Problem(f"{path}.weight", f"a fixed weight must be an integer, not {weight}")
    if variant.get("weightType") not in (None, *WEIGHT_TYPES):
        yield Problem(
            f"{path}.weightType", f"{variant['weightType']} is not a weight type. Available: fix, variable"
        )


def _total_problems(variants: Sequence[Mapping[str, Any]], path: str) -> Iterator[Problem]:
    fixed = _list_fixed_weights(variants)
    if variants and len(fixed) == len(variants):
        yield Problem(path, 'at least one variant needs weightType "variable": it gets the rest')
    if sum(fixed) > TOTAL_WEIGHT:
        yield Problem(path, f"the fixed weights add up to {sum(fixed)}; they can be {TOTAL_WEIGHT} at most")


def _percent_problems(variants: Sequence[Mapping[str, Any]], path: str) -> Iterator[Problem]:
    fixed = _list_fixed_weights(variants)
    if variants and len(fixed) == len(variants):
        yield Problem(path, "Leave at least one variant without a fixed percentage. It gets the rest.")
    if sum(fixed) > TOTAL_WEIGHT:
        yield Problem(path, f"The fixed percentages add up to {sum(fixed) / 10:g} %. The maximum is 100 %.")


def _list_fixed_weights(variants: Sequence[Mapping[str, Any]]) -> list[float]:
    """The weights that are not variable.

    As in the reference, a variant without a weight type counts as fixed.
    """
    return [variant["weight"] for variant in variants if variant.get("weightType") != "variable"]


def payload_problems(payload: Mapping[str, Any] | None, path: str) -> Iterator[Problem]:
    if payload is None:
        return
    kind, value = payload["type"], payload["value"]
    if kind not in PAYLOAD_TYPES:
        yield Problem(f"{path}.type", f"{kind} is not a payload type. Available: {choices(PAYLOAD_TYPES)}")
    elif kind == "json" and (fault := find_json_fault(value)):
        yield Problem(f"{path}.value", fault)
    elif kind == "number" and not _is_number(value):
        message = f"SDKs cannot read {clip(value)} as a number, which the payload type announces"
        yield UnreadableValue(f"{path}.value", message)


def find_json_fault(text: str) -> str:
    """The error in a JSON text; "" if it is valid."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return f"invalid JSON (line {error.lineno}, column {error.colno})"
    return ""


def _is_number(text: str) -> bool:
    try:
        number = float(text)
    except ValueError:
        return False
    return number - number == 0 and "_" not in text  # neither infinite nor NaN


def _override_problems(overrides: Sequence[Mapping[str, Any]], path: str) -> Iterator[Problem]:
    for index, override in enumerate(overrides):
        if not override["contextName"]:
            yield Problem(f"{path}[{index}].contextName", "a context field name is required")
