"""Normalizes and validates the strategies of flags."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from flagadmin.core.errors import Problem, join_path
from flagadmin.core.unreadable_values import UnreadablePercentage, UnreadableValue
from flagadmin.core.wording import choices
from playground.engine.coercion import parameters_of
from playground.engine.definitions import StrategyDefinition
from playground.engine.strategy_types import FLEXIBLE_ROLLOUT, STRATEGY_TYPES
from projects.limits import Limits
from projects.strategies.constraint_rules import constraints_problems, make_constraint
from projects.strategies.fields import CONVERTED
from projects.strategies.known_names import KnownNames, load_known_names
from projects.strategies.variant_rules import make_variants, variants_problems
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
