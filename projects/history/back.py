"""Goes back from the definitions of flags to earlier ones, by taking audit events back, the newest first.

An event's ``before`` says what its subject was. What it leaves out is in ``earlier``, which the API does not show: ids
of strategies that an import replaced, sort orders, where a revived flag was on, all parents of a flag, the children of
a deleted one, what flags had in a deleted environment. Events of earlier versions have none; then ids are made up, and
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
from projects.strategies.fields import MEMBERS

Document = dict[str, Any]


class PastEvent(NamedTuple):
    """An event. What it says about afterwards stays JSON: few ways back need it."""

    type: str
    environment: str | None
    feature: str | None
    before: Any
    after_json: str | None
    earlier: Any

    @property
    def after(self) -> Any:
        return self.after_json and orjson.loads(self.after_json)


class Back:
    """Definitions in an environment on the way back: ``flags`` by name, archived ones too, and changed ``segments``."""

    def __init__(self, environment: str, flags: Iterable[FlagDefinition]) -> None:
        self.environment = environment
        self.flags = {flag["name"]: flag for flag in flags}
        self.segments: dict[int, SegmentDefinition] = {}

    def take(self, event: PastEvent) -> None:
        """Takes an event back. One about a flag that is not there changes nothing."""
        if event.type in _WHOLE:
            _WHOLE[event.type](self, event)
        elif event.feature in self.flags and event.type in _PARTS:
            _PARTS[event.type](self, self.flags[event.feature], event)

    def active(self, projects: Iterable[str]) -> list[FlagDefinition]:
        """The flags that were active in these projects, as ``projects.definitions`` has them."""
        within = set(projects)
        found = [flag for flag in self.flags.values() if flag["project"] in within and not flag["archived"]]
        return [_definition(flag) for flag in sorted(found, key=lambda flag: flag["name"])]


def _definition(flag: FlagDefinition) -> FlagDefinition:
    definition = flag.copy()
    definition.pop("archived", None)
    definition["strategies"] = sorted(flag["strategies"], key=lambda each: (each["sortOrder"], each["id"]))
    return definition


# The flag as a whole -----------------------------------------------------------------------------------------------


def _created(back: Back, event: PastEvent) -> None:
    back.flags.pop(event.feature or "", None)


def _deleted(back: Back, event: PastEvent) -> None:
    before = event.before
    flag: Any = {"name": before["name"], "project": before["project"], **_whole(before, back.environment)}
    back.flags[before["name"]] = flag | {"archived": before["archived"]}
    children: dict[str, list[Any]] = (event.earlier or {}).get("children") or {}
    for child, parents in children.items():
        if child in back.flags:
            back.flags[child]["dependencies"] = _parents(parents)


def _environment_deleted(back: Back, event: PastEvent) -> None:
    if event.before["name"] != back.environment:
        return
    for name, there in ((event.earlier or {}).get("flags") or {}).items():
        if name in back.flags:
            back.flags[name] |= {**there, "strategies": [_strategy(each) for each in there["strategies"]]}


def _segment(back: Back, event: PastEvent) -> None:
    _set_segments(back, [event.before])


def _project_deleted(back: Back, event: PastEvent) -> None:
    _set_segments(back, event.before["segments"])


def _set_segments(back: Back, documents: Iterable[Mapping[str, Any]]) -> None:
    for each in documents:
        back.segments[each["id"]] = {
            "id": each["id"],
            "name": each["name"],
            "constraints": each["constraints"],
        }


_WHOLE: dict[str, Callable[[Back, PastEvent], None]] = {
    E.FEATURE_CREATED: _created,
    E.FEATURE_DELETED: _deleted,
    E.ENVIRONMENT_DELETED: _environment_deleted,
    E.SEGMENT_UPDATED: _segment,
    E.SEGMENT_DELETED: _segment,
    E.PROJECT_DELETED: _project_deleted,
}


# Parts of a flag ---------------------------------------------------------------------------------------------------


def _metadata(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    if event.before:
        flag["impression_data"] = event.before["impressionData"]


def _stale(was: bool) -> Callable[[Back, FlagDefinition, PastEvent], None]:
    def set_back(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
        flag["stale"] = was

    return set_back


def _archived(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    flag["archived"] = False
    _imported(back, flag, event)


def _revived(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    flag["archived"] = True
    if event.earlier and "on" in event.earlier:
        flag["enabled"] = back.environment in event.earlier["on"]
    _imported(back, flag, event)


def _moved(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    flag["project"] = event.before["project"]


def _turned(on: bool) -> Callable[[Back, FlagDefinition, PastEvent], None]:
    def turn(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
        if event.environment == back.environment:
            flag["enabled"] = on

    return turn


def _variants(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    if event.environment == back.environment:
        flag["variants"] = event.before["variants"]


def _one_strategy(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    """One was added (no ``before``), changed or removed (no ``after``)."""
    if event.environment != back.environment:
        return
    rest = flag["strategies"]
    if event.after_json is not None:
        identifier = (event.before or event.after).get("id")
        found = [place for place, each in enumerate(rest) if each["id"] == identifier]
        if not found:  # one with an id that was made up
            after = _strategy(event.after, "")
            found = [place for place, each in enumerate(rest) if each | {"id": ""} == after]
        rest = [each for place, each in enumerate(rest) if place not in found[:1]]
    flag["strategies"] = rest if event.before is None else [*rest, _strategy(event.before)]


def _order(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    if event.environment == back.environment:
        places = (event.earlier or {}).get("sortOrders") or {
            identifier: place for place, identifier in enumerate(event.before["strategyIds"])
        }
        for strategy in flag["strategies"]:
            strategy["sortOrder"] = places.get(strategy["id"], strategy["sortOrder"])


def _dependency(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    """One was added or changed, or removed (no ``after``)."""
    if event.earlier is not None:
        flag["dependencies"] = _parents(event.earlier["dependencies"])
        return
    rest = [
        each for each in flag["dependencies"] if each["feature"] != (event.after or event.before)["feature"]
    ]
    flag["dependencies"] = rest if event.before is None else [*rest, *_parents([event.before])]


def _imported(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    """An import or its undoing, which have the whole flag in one environment as ``before``."""
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
            _strategy(each, identifier) for each, identifier in zip(before["strategies"], ids, strict=True)
        ]


def _reverted(back: Back, flag: FlagDefinition, event: PastEvent) -> None:
    flag |= _whole(event.before, back.environment)


_PARTS: dict[str, Callable[[Back, FlagDefinition, PastEvent], None]] = {
    E.FEATURE_METADATA_UPDATED: _metadata,
    E.FEATURE_STALE_ON: _stale(False),
    E.FEATURE_STALE_OFF: _stale(True),
    E.FEATURE_ARCHIVED: _archived,
    E.FEATURE_REVIVED: _revived,
    E.FEATURE_PROJECT_CHANGE: _moved,
    E.FEATURE_ENVIRONMENT_ENABLED: _turned(False),
    E.FEATURE_ENVIRONMENT_DISABLED: _turned(True),
    E.FEATURE_ENVIRONMENT_VARIANTS_UPDATED: _variants,
    E.FEATURE_STRATEGY_ADD: _one_strategy,
    E.FEATURE_STRATEGY_UPDATE: _one_strategy,
    E.FEATURE_STRATEGY_REMOVE: _one_strategy,
    E.FEATURE_STRATEGY_ORDER_CHANGED: _order,
    E.FEATURE_DEPENDENCY_ADDED: _dependency,
    E.FEATURE_DEPENDENCY_REMOVED: _dependency,
    E.FEATURE_IMPORTED: _imported,
    E.IMPORT_UNDONE: _imported,
    E.FEATURE_REVERTED: _reverted,
}
TYPES = [kind.value for kind in map(E, (*_WHOLE, *_PARTS))]
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
"""Those of them that change nothing in other environments."""


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


def _whole(before: Mapping[str, Any], environment: str) -> Any:
    """What an event that has a flag in all environments says about one of them."""
    places = [place for place in before["environments"] if place["name"] == environment]
    there: Any = places[0] if places else {"enabled": False, "variants": [], "strategies": []}
    return {
        "enabled": there["enabled"],
        "impression_data": before["impressionData"],
        "stale": before["stale"],
        "variants": there["variants"],
        "strategies": [_strategy(each) for each in there["strategies"]],
        "dependencies": _parents(before["dependencies"]),
    }


def _strategy(document: Mapping[str, Any], identifier: str | None = None) -> StrategyDefinition:
    """With its members in the order in which definitions have them. Old events may lack some."""
    strategy: Any = {
        **{member: document.get(member, _DEFAULTS.get(member)) for member in MEMBERS},
        "id": document.get("id", "") if identifier is None else identifier,
        "segments": document.get("segments", []),
    }
    return strategy


def _parents(documents: Iterable[Mapping[str, Any]]) -> list[DependencyDefinition]:
    return [
        {"feature": each["feature"], "enabled": each["enabled"], "variants": each["variants"]}
        for each in documents
    ]
