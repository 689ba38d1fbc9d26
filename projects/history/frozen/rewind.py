"""Reconstructs earlier definitions of flags by reverting audit events, newest first.

An event's ``before`` has the earlier state. ``earlier``, which the API does not show, has the rest: ids of strategies
that an import replaced, sort orders, environments in which a revived flag was on, all parents of a flag, the children
of a deleted one, settings in a deleted environment. Events of earlier versions have none; then ids are invented, and
the order of parents may differ.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from flagadmin.core.audit.events import EventType as E
from playground.engine.definitions import (
    DependencyDefinition,
    FlagDefinition,
    SegmentDefinition,
    StrategyDefinition,
)
from projects.states import NOTHING, in_order
from projects.strategies.fields import MEMBERS


class PastEvent(NamedTuple):
    """An event. Its state afterwards stays JSON, because it is rarely needed."""

    type: str
    environment: str | None
    feature: str | None
    before: Any
    after_json: str | None
    earlier: Any

    @classmethod
    def of_row(
        cls, kind: str, environment: str | None, feature: str | None, *documents: str | None
    ) -> "PastEvent":
        before, after, earlier = documents
        return cls(
            kind,
            environment,
            feature,
            before and orjson.loads(before),
            after,
            earlier and orjson.loads(earlier),
        )

    @property
    def after(self) -> Any:
        return self.after_json and orjson.loads(self.after_json)


class Back:
    """Definitions in an environment during reconstruction: ``flags`` by name, including archived, and
    changed ``segments``.
    """

    def __init__(self, environment: str, flags: Iterable[FlagDefinition]) -> None:
        self.environment = environment
        self.flags = {flag["name"]: flag for flag in flags}
        self.segments: dict[int, SegmentDefinition] = {}

    def undo(self, event: PastEvent) -> None:
        """Reverts an event. An event about an unknown flag changes nothing."""
        if event.type in _OF_FLAGS:
            _OF_FLAGS[event.type](self, event)
        elif event.feature in self.flags and event.type in _IN_FLAGS:
            _IN_FLAGS[event.type](self, self.flags[event.feature], event)

    def active(self, projects: Iterable[str]) -> list[FlagDefinition]:
        """The flags that were active in these projects, in the form of ``projects.definitions``."""
        project_ids = set(projects)
        active_flags = [
            flag for flag in self.flags.values() if flag["project"] in project_ids and not flag["archived"]
        ]
        return [_find_definition(flag) for flag in sorted(active_flags, key=lambda flag: flag["name"])]


def _find_definition(flag: FlagDefinition) -> FlagDefinition:
    definition = flag.copy()
    definition.pop("archived", None)
    definition["strategies"] = in_order(flag["strategies"])
    return definition


# The flag as a whole -----------------------------------------------------------------------------------------------


def _undo_creation(back: Back, event: PastEvent) -> None:
    back.flags.pop(event.feature or "", None)


def _undo_deletion(back: Back, event: PastEvent) -> None:
    before = event.before
    flag: Any = {
        "name": before["name"],
        "project": before["project"],
        **_find_flag_in_environment(before, back.environment),
    }
    back.flags[before["name"]] = flag | {"archived": before["archived"]}
    children: dict[str, list[Any]] = (event.earlier or {}).get("children") or {}
    for child, parents in children.items():
        if child in back.flags:
            back.flags[child]["dependencies"] = _parents(parents)


def _undo_environment_deletion(back: Back, event: PastEvent) -> None:
    if event.before["name"] != back.environment:
        return
    for name, place in ((event.earlier or {}).get("flags") or {}).items():
        if name in back.flags:
            back.flags[name] |= {
                **place,
                "strategies": [_strategy(strategy) for strategy in place["strategies"]],
            }


def _undo_segment_change(back: Back, event: PastEvent) -> None:
    _set_segments(back, [event.before])


def _undo_project_deletion(back: Back, event: PastEvent) -> None:
    _set_segments(back, event.before["segments"])


def _set_segments(back: Back, documents: Iterable[Mapping[str, Any]]) -> None:
    for segment in documents:
        back.segments[segment["id"]] = {
            "id": segment["id"],
            "name": segment["name"],
            "constraints": segment["constraints"],
        }


_OF_FLAGS: dict[str, Callable[[Back, PastEvent], None]] = {
    E.FEATURE_CREATED: _undo_creation,
    E.FEATURE_DELETED: _undo_deletion,
    E.ENVIRONMENT_DELETED: _undo_environment_deletion,
    E.SEGMENT_UPDATED: _undo_segment_change,
    E.SEGMENT_DELETED: _undo_segment_change,
    E.PROJECT_DELETED: _undo_project_deletion,
}


# Parts of a flag ---------------------------------------------------------------------------------------------------


def _undo_metadata(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    if event.before:
        flag["impression_data"] = event.before["impressionData"]


def _undo_stale(was_stale: bool) -> Callable[[Back, FlagDefinition, PastEvent], None]:
    def set_back(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
        flag["stale"] = was_stale

    return set_back


def _undo_archival(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    flag["archived"] = False
    _undo_import(back, flag, event)


def _undo_revival(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    flag["archived"] = True
    if event.earlier and "on" in event.earlier:
        flag["enabled"] = back.environment in event.earlier["on"]
    _undo_import(back, flag, event)


def _undo_move(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    flag["project"] = event.before["project"]


def _undo_switch(was_on: bool) -> Callable[[Back, FlagDefinition, PastEvent], None]:
    def turn(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
        if event.environment == back.environment:
            flag["enabled"] = was_on

    return turn


def _undo_variants(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    if event.environment == back.environment:
        flag["variants"] = event.before["variants"]


def _undo_strategy_change(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    """A strategy was added (no ``before``), changed or removed (no ``after``)."""
    if event.environment != back.environment:
        return
    strategies = flag["strategies"]
    if event.after_json is not None:
        identifier = (event.before or event.after).get("id")
        matches = [index for index, strategy in enumerate(strategies) if strategy["id"] == identifier]
        if not matches:  # a strategy with an invented id
            after = _strategy(event.after, "")
            matches = [index for index, strategy in enumerate(strategies) if strategy | {"id": ""} == after]
        strategies = [strategy for index, strategy in enumerate(strategies) if index not in matches[:1]]
    flag["strategies"] = strategies if event.before is None else [*strategies, _strategy(event.before)]


def _undo_order(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    if event.environment == back.environment:
        sort_orders = (event.earlier or {}).get("sortOrders") or {
            identifier: index for index, identifier in enumerate(event.before["strategyIds"])
        }
        for strategy in flag["strategies"]:
            strategy["sortOrder"] = sort_orders.get(strategy["id"], strategy["sortOrder"])


def _undo_dependency_change(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    """A dependency was added or changed, or removed (no ``after``)."""
    if event.earlier is not None:
        flag["dependencies"] = _parents(event.earlier["dependencies"])
        return
    others = [
        parent
        for parent in flag["dependencies"]
        if parent["feature"] != (event.after or event.before)["feature"]
    ]
    flag["dependencies"] = others if event.before is None else [*others, *_parents([event.before])]


def _undo_import(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    """An import or its undo, whose ``before`` has the whole flag in one environment."""
    before = event.before
    if not before:
        return
    flag["archived"] = before["archived"]
    flag["impression_data"] = before["impressionData"]
    flag["stale"] = before["stale"]
    flag["dependencies"] = _parents(before["parents"])
    if event.environment == back.environment:
        earlier = event.earlier or {}
        ids = earlier.get("strategyIds") or [f"past-{n:03}" for n in range(len(before["strategies"]))]
        flag["enabled"] = earlier.get("enabled", before["enabled"])
        flag["variants"] = before["variants"]
        flag["strategies"] = [
            _strategy(strategy, identifier)
            for strategy, identifier in zip(before["strategies"], ids, strict=True)
        ]


def _undo_revert(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    flag |= _find_flag_in_environment(event.before, back.environment)


_IN_FLAGS: dict[str, Callable[[Back, FlagDefinition, PastEvent], None]] = {
    E.FEATURE_METADATA_UPDATED: _undo_metadata,
    E.FEATURE_STALE_ON: _undo_stale(False),
    E.FEATURE_STALE_OFF: _undo_stale(True),
    E.FEATURE_ARCHIVED: _undo_archival,
    E.FEATURE_REVIVED: _undo_revival,
    E.FEATURE_PROJECT_CHANGE: _undo_move,
    E.FEATURE_ENVIRONMENT_ENABLED: _undo_switch(False),
    E.FEATURE_ENVIRONMENT_DISABLED: _undo_switch(True),
    E.FEATURE_ENVIRONMENT_VARIANTS_UPDATED: _undo_variants,
    E.FEATURE_STRATEGY_ADD: _undo_strategy_change,
    E.FEATURE_STRATEGY_UPDATE: _undo_strategy_change,
    E.FEATURE_STRATEGY_REMOVE: _undo_strategy_change,
    E.FEATURE_STRATEGY_ORDER_CHANGED: _undo_order,
    E.FEATURE_DEPENDENCY_ADDED: _undo_dependency_change,
    E.FEATURE_DEPENDENCY_REMOVED: _undo_dependency_change,
    E.FEATURE_IMPORTED: _undo_import,
    E.IMPORT_UNDONE: _undo_import,
    E.FEATURE_PROMOTED: _undo_import,
    E.PROMOTION_UNDONE: _undo_import,
    E.FEATURE_REVERTED: _undo_revert,
}
TYPES = [kind.value for kind in map(E, (*_OF_FLAGS, *_IN_FLAGS))]
"""The types of events that change definitions."""
IN_ONE_ENVIRONMENT = [
    E.FEATURE_ENVIRONMENT_ENABLED.value,
    E.FEATURE_ENVIRONMENT_DISABLED.value,
    E.FEATURE_ENVIRONMENT_VARIANTS_UPDATED.value,
    E.FEATURE_STRATEGY_ADD.value,
    E.FEATURE_STRATEGY_UPDATE.value,
    E.FEATURE_STRATEGY_REMOVE.value,
    E.FEATURE_STRATEGY_ORDER_CHANGED.value,
    E.ENVIRONMENT_DELETED.value,
]
"""The types among them that affect only one environment."""


# Documents ---------------------------------------------------------------------------------------------------------


_DEFAULTS: dict[str, Any] = {
    "name": "default",
    "title": None,
    "disabled": False,
    "sortOrder": 0,
    "parameters": {},
    "constraints": [],
    "variants": [],
}


def _find_flag_in_environment(before: Mapping[str, Any], environment: str) -> Any:
    """Extracts one environment from an event with a flag in all environments."""
    places = [place for place in before["environments"] if place["name"] == environment]
    settings: Any = places[0] if places else NOTHING
    return {
        "enabled": settings["enabled"],
        "impression_data": before["impressionData"],
        "stale": before["stale"],
        "variants": settings["variants"],
        "strategies": [_strategy(strategy) for strategy in settings["strategies"]],
        "dependencies": _parents(before["dependencies"]),
    }


def _strategy(document: Mapping[str, Any], identifier: str | None = None) -> StrategyDefinition:
    """The strategy with its members in the order of definitions. Old events may lack some."""
    strategy: Any = {
        **{member: document.get(member, _DEFAULTS.get(member)) for member in MEMBERS},
        "id": document.get("id", "") if identifier is None else identifier,
        "segments": document.get("segments", []),
    }
    return strategy


def _parents(documents: Iterable[Mapping[str, Any]]) -> list[DependencyDefinition]:
    return [
        {"feature": parent["feature"], "enabled": parent["enabled"], "variants": parent["variants"]}
        for parent in documents
    ]
