"""Normalizes and validates the strategies of flags.

Validation rules for custom strategy types.

Normalizes and validates the variants of strategies and flag environments.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import orjson

from flagadmin.core.errors import Problem, choices, clip, join_path
from flagadmin.core.unreadable_values import UnreadablePercentage, UnreadableValue
from playground.engine.definitions import StrategyDefinition, VariantDefinition
from playground.engine.literals import objects_of, parameters_of
from playground.engine.strategy_types import FLEXIBLE_ROLLOUT, STRATEGY_TYPES
from projects.models import StrategyType
from projects.rules import Limits, name_problems, text_problems
from projects.strategies.constraint_rules import constraints_problems, make_constraint
from projects.strategies.fields import CONVERTED
from projects.strategies.known_names import KnownNames, load_known_names
from projects.text_values import format_scalar, is_scalar


@dataclass(frozen=True, slots=True)
class StrategyDefaults:
    """Defaults of a gradual rollout: the project's default stickiness, and the flag's name as group.

    ``keeps_results``: users keep their results, so only values that do not change SDKs' reading are filled in, and
    weights stay.
    """

    flag: str
    stickiness: str = "default"
    keeps_results: bool = False


def make_strategy(
    values: Mapping[str, Any],
    defaults: StrategyDefaults,
    *,
    stored_variants: Sequence[Mapping[str, Any]] = (),
) -> StrategyDefinition:
    """A strategy in stored form: the members listed in ``fields``, and ``segments``.

    ``sortOrder`` is None if it was not given; the caller sets it. Parameters that are not strings, numbers,
    booleans or null are kept, and :func:`strategy_problems` reports them. ``stored_variants`` are the current
    variants: see :func:`make_variants`.
    """
    variants = values.get("variants") or []
    document: Any = {
        **{member: stored(values.get(member)) for member, stored in CONVERTED},
        "name": values["name"],
        "parameters": make_parameters(values["name"], values.get("parameters") or {}, defaults),
        "constraints": [make_constraint(constraint) for constraint in values.get("constraints") or []],
        "variants": make_variants(variants, variants if defaults.keeps_results else stored_variants),
        "segments": list(values.get("segments") or []),
    }
    return document


def merge_strategy(stored: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A stored strategy with the given members. Null changes nothing, except ``title``."""
    return {**stored, **{key: value for key, value in values.items() if value is not None or key == "title"}}


class StrategyPlanner:
    """Computes the stored form of strategies of a project's flags. Loads the possible names once."""

    def __init__(self, project_id: str) -> None:
        self._load_known_names = cache(partial(load_known_names, project_id))

    def plan(
        self,
        values: Mapping[str, Any],
        defaults: StrategyDefaults,
        path: str = "",
        stored: StrategyDefinition | None = None,
    ) -> tuple[StrategyDefinition, list[Problem]]:
        """The strategy in stored form, replacing ``stored``, and its problems."""
        document = make_strategy(values, defaults, stored_variants=stored["variants"] if stored else ())
        problems = strategy_problems(
            document,
            path,
            known_names=self._load_known_names(),
            limits=Limits.from_settings(),
            given_variants=values.get("variants") or [],
            stored=stored,
        )
        return document, list(problems)


def make_parameters(name: str, values: Mapping[str, Any], defaults: StrategyDefaults) -> dict[str, Any]:
    parameters = {key: format_scalar(value) if is_scalar(value) else value for key, value in values.items()}
    if name == FLEXIBLE_ROLLOUT and defaults.keeps_results:
        parameters = {"stickiness": "default", "groupId": defaults.flag} | parameters
    elif name == FLEXIBLE_ROLLOUT:
        if (
            values.get("rollout") is None
        ):  # an empty list stays and means nobody; it must not become everybody
            parameters["rollout"] = "100"
        parameters["stickiness"] = parameters.get("stickiness") or defaults.stickiness
        parameters["groupId"] = parameters.get("groupId") or defaults.flag
    return parameters


def make_default_strategy(
    configured: Mapping[str, Any] | None, defaults: StrategyDefaults
) -> StrategyDefinition:
    """The strategy added to a flag that is turned on without an enabled strategy.

    This is the default strategy of the project environment or, without one, a rollout to everyone.
    """
    return make_strategy(configured or {"name": FLEXIBLE_ROLLOUT}, defaults)


def strategy_problems(
    strategy: StrategyDefinition,
    path: str,
    *,
    known_names: KnownNames,
    limits: Limits,
    given_variants: Sequence[Any] | None = None,
    stored: StrategyDefinition | None = None,
) -> Iterator[Problem]:
    """Problems of a strategy that replaces ``stored``.

    Variants are sorted when stored. ``given_variants`` is the list as sent, so that paths match the request.
    """
    if strategy["name"] not in known_names.strategy_types:
        known = choices(known_names.strategy_types)
        yield Problem(
            join_path(path, "name"), f"strategy type {strategy['name']} not found. Available: {known}"
        )
    for key, value in strategy["parameters"].items():
        if not isinstance(value, str):
            yield Problem(join_path(path, f"parameters.{key}"), "must be a string, a number or a boolean")
    yield from percentage_problems(strategy, path, [stored] if stored else [])
    yield from constraints_problems(
        strategy["constraints"],
        join_path(path, "constraints"),
        legal_values=known_names.legal_values,
        limits=limits,
    )
    variants = strategy["variants"] if given_variants is None else given_variants
    yield from variants_problems(variants, join_path(path, "variants"))
    yield from segments_problems(
        strategy["segments"], join_path(path, "segments"), segments=known_names.segments, limits=limits
    )


def segments_problems(
    ids: Sequence[int], path: str, *, segments: Mapping[int, str], limits: Limits
) -> Iterator[Problem]:
    """Segments must exist, be global or belong to the project, and be listed only once."""
    if len(ids) > limits.segments:
        yield Problem(path, f"must have at most {limits.segments} segments, not {len(ids)}")
    seen: set[int] = set()
    for index, identifier in enumerate(ids):
        if identifier in seen:
            name = segments.get(identifier, identifier)  # ids in an import file differ from stored ones
            yield Problem(f"{path}[{index}]", f"segment {name} is listed more than once")
        elif identifier not in segments:
            known = choices(segments.values()) or "none"
            yield Problem(f"{path}[{index}]", f"segment {identifier} not found. Available: {known}")
        seen.add(identifier)


def percentage_problems(
    strategy: Mapping[str, Any], path: str, stored: Iterable[Mapping[str, Any]]
) -> Iterator[Problem]:
    """A percentage that SDKs cannot read. An unchanged one of ``stored`` is not a new mistake."""
    kind = STRATEGY_TYPES.get(strategy["name"])
    if kind and (fault := kind.explain_percentage(parameters_of(strategy.get("parameters")))):
        is_old = any(
            kind.explain_percentage(parameters_of(each["parameters"])) == fault
            for each in stored
            if each["name"] == kind.name
        )
        problem = UnreadableValue if is_old else UnreadablePercentage
        yield problem(join_path(path, f"parameters.{kind.percentage}"), fault)


PARAMETER_TYPES = frozenset({"string", "percentage", "list", "number", "boolean"})


MAX_TYPE_LENGTH = 100


def strategy_type_problems(strategy_type: StrategyType) -> Iterator[Problem]:
    yield from name_problems(strategy_type.name)
    yield from parameter_problems(strategy_type.parameters)


def parameter_problems(parameters: Any, path: str = "parameters") -> Iterator[Problem]:
    """Problems of ``[{"name": …, "type": …, "description": …, "required": boolean}]``."""
    if not isinstance(parameters, list):
        yield Problem(path, "must be a list")
        return
    seen: set[str] = set()
    for index, item in enumerate(parameters):
        parameter_path = f"{path}[{index}]"
        if not isinstance(item, dict):
            yield Problem(parameter_path, "must be an object")
            continue
        yield from _find_parameter_problems(item, parameter_path)
        name = item.get("name")
        if isinstance(name, str) and name in seen:
            yield Problem(f"{parameter_path}.name", f'"{name}" is listed more than once')
        elif isinstance(name, str):
            seen.add(name)


def _find_parameter_problems(item: dict[str, Any], path: str) -> Iterator[Problem]:
    if not isinstance(item.get("name"), str) or not item["name"]:
        yield Problem(f"{path}.name", "is required and must be a string")
    kind = item.get("type")
    if not isinstance(kind, str) or kind not in PARAMETER_TYPES:
        yield Problem(f"{path}.type", f"must be one of {choices(PARAMETER_TYPES)}")
    if not isinstance(item.get("required", False), bool):
        yield Problem(f"{path}.required", "must be true or false")
    yield from text_problems(item.get("description"), f"{path}.description")


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
