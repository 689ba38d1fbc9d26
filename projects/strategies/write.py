"""The one writer of flags' states in environments: plans changes of locked flags, and writes their rows and events."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeVar

import orjson
from django.db import connection
from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record_all
from flagadmin.core.change_checks import KnownChange
from flagadmin.core.change_checks.comments import foresee
from flagadmin.core.db.statements import copy_rows, execute
from flagadmin.core.db.transactions import transactional
from flagadmin.core.document import Document
from groups.access import Caller, Permission
from playground.engine.definitions import StrategyDefinition
from projects.access import access_active_flags_for_update, find_project_environment, lock_projects
from projects.definitions import read_flag_parts
from projects.models import Flag, ProjectEnvironment
from projects.models.strategies import make_time_ordered_id
from projects.project_scope import hold_segments
from projects.states import NOTHING, apply_there
from projects.strategies.fields import COLUMNS, FIELDS
from projects.strategies.planned import PlannedFlag
from projects.strategies.rules import StrategyPlanner

R = TypeVar("R")
MANY = 50
"""From this number of new rows on, they are copied."""


class _HoldingPlanner(StrategyPlanner):
    """Prevents the segments of planned strategies from being deleted until the end of the transaction."""

    def plan(self, values: Mapping[str, Any], *args: Any, **options: Any) -> Any:
        hold_segments(values.get("segments") or ())
        return super().plan(values, *args, **options)


def change_flag(
    project_id: str,
    name: str,
    environment: str,
    permission: Permission,
    plan: Callable[[PlannedFlag], R],
    *,
    caller: Caller,
) -> R:
    """Changes one flag. See `change_flags`."""
    [result] = change_flags({project_id: [name]}, [environment], permission, plan, caller=caller)
    return result


@transactional
def change_flags(
    names: Mapping[str, Iterable[str]],
    environments: Iterable[str],
    permission: Permission,
    plan: Callable[[PlannedFlag], R],
    *,
    access: Callable[..., list[Flag]] = access_active_flags_for_update,
    caller: Caller,
) -> list[R]:
    """Makes the changes that ``plan`` plans for each flag in each environment, all or none. Returns its results.

    ``names`` are by project. If no other change follows, one that must be refused is refused before anything is
    written. A flag whose last enabled strategy is disabled or removed is turned off in the environment, because a flag
    without enabled strategies is on for everyone. The number of statements does not depend on the number of flags.

    Raises NotFound, NoAccess, ValidationError for too many strategies, the errors of ``access`` and of ``plan``.
    """
    listed = {project_id: list(names[project_id]) for project_id in sorted(names)}
    if len(listed) > 1:
        lock_projects(caller, listed, flags=listed)
    planned = list[PlannedFlag]()
    for project_id, environment in product(listed, environments):
        flags = access(caller, project_id, listed[project_id], permission, environment=environment)
        link = find_project_environment(project_id, environment)
        planned += read_planned(flags, link, _HoldingPlanner(project_id), caller=caller)
    results = [plan(each) for each in planned]
    for each in planned:
        each.check_room()
    if events := [event for each in planned for event in _list_events(each)]:
        places = [(each, each.link.environment_id) for each in planned]
        foresee(events, KnownChange({(each.flag.name, place): each.state for each, place in places}))
        write_states(StateChange(each.flag.pk, place, each.before, each.state) for each, place in places)
        record_all(events, actor=caller)
    return results


def read_planned(
    flags: Sequence[Flag], link: ProjectEnvironment, planner: StrategyPlanner, *, caller: Caller
) -> list[PlannedFlag]:
    """The stored states of flags of one project, to plan changes."""
    environment = link.environment_id

    def require(permission: Permission) -> None:
        caller.check(permission, project=link.project_id, environment=environment)

    with connection.cursor() as cursor:
        parts = read_flag_parts(cursor, [flag.pk for flag in flags], environment)
    planned = []
    for flag in flags:
        enabled, variants = parts.read_state(flag.pk)
        strategies = parts.strategies.get(flag.pk, [])
        state = {"enabled": enabled, "variants": variants, "strategies": strategies}
        planned.append(PlannedFlag(flag, link, state, planner, make_id=_make_id, require=require))
    return planned


def _make_id() -> str:
    return str(make_time_ordered_id())


# Events ----------------------------------------------------------------------------------------------------


def _list_events(planned: PlannedFlag) -> Iterator[Event]:
    """An event for each change that changes something, and the last one if the flag is turned on or off."""
    now, place = planned.before, (planned.flag, planned.link.environment_id)
    for change in planned.made:
        before, now = now, apply_there(now, [change])
        if change.part.member == "strategies":
            old, new = (_find(state, change.part.key) for state in (before, now))
            if old != new:
                yield Event.of_flag(_STRATEGY_EVENTS[old is None, new is None], *place, before=old, after=new)
        elif change.part.member == "order" and before != now:
            old_ids, new_ids = ({"strategyIds": _list_ids(state)} for state in (before, now))
            kind, earlier = EventType.FEATURE_STRATEGY_ORDER_CHANGED, {"sortOrders": change.before}
            yield Event.of_flag(kind, *place, before=old_ids, after=new_ids, earlier=earlier)
        elif change.part.member == "variants" and before != now:
            old_variants, new_variants = ({"variants": state["variants"]} for state in (before, now))
            kind = EventType.FEATURE_ENVIRONMENT_VARIANTS_UPDATED
            yield Event.of_flag(kind, *place, before=old_variants, after=new_variants)
    if planned.is_switched:
        on, off = EventType.FEATURE_ENVIRONMENT_ENABLED, EventType.FEATURE_ENVIRONMENT_DISABLED
        yield Event.of_flag(on if now["enabled"] else off, *place)


_STRATEGY_EVENTS = {
    (True, False): EventType.FEATURE_STRATEGY_ADD,
    (False, False): EventType.FEATURE_STRATEGY_UPDATE,
    (False, True): EventType.FEATURE_STRATEGY_REMOVE,
}
"""By whether the strategy is absent before and after."""


def _find(state: Mapping[str, Any], key: str) -> StrategyDefinition | None:
    return next((strategy for strategy in state["strategies"] if strategy["id"] == key), None)


def _list_ids(state: Mapping[str, Any]) -> list[str]:
    return [strategy["id"] for strategy in state["strategies"]]


# Rows ------------------------------------------------------------------------------------------------------


class StateChange(NamedTuple):
    """A flag's state in an environment, before (None: it has no row there) and after. All strategies have ids."""

    flag: int
    environment: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any]


_PLACES = """
INSERT INTO projects_flagenvironment (flag_id, environment_id, enabled, variants)
SELECT flag_id, environment_id, enabled, variants
  FROM jsonb_populate_recordset(NULL::projects_flagenvironment, %s::jsonb)
ON CONFLICT (flag_id, environment_id) DO UPDATE SET enabled = excluded.enabled, variants = excluded.variants
"""
_COLUMNS = ", ".join(("id", "flag_id", "environment_id", "created_at", *COLUMNS))
_STRATEGIES = f"""
INSERT INTO projects_strategy ({_COLUMNS})
SELECT {_COLUMNS} FROM jsonb_populate_recordset(NULL::projects_strategy, %s::jsonb)
ON CONFLICT (id) DO UPDATE SET {", ".join(f"{column} = excluded.{column}" for column in COLUMNS)}
"""  # noqa: S608 - columns of our own
_LINKS = """
INSERT INTO projects_strategysegment (strategy_id, segment_id) SELECT * FROM unnest(%s::uuid[], %s::bigint[])
"""


def write_states(changes: Iterable[StateChange]) -> None:
    """Writes the rows that differ, in a few statements. Locks and checks nothing, and records no event.

    Edited strategies keep their time of creation.
    """
    now, places, strategies = timezone.now(), _Rows(), _Rows()
    gone, unlinked, links = list[str](), list[str](), list[tuple[str, int]]()
    for flag, environment, stored, after in changes:
        before, place = stored or NOTHING, {"flag_id": flag, "environment_id": environment}
        switch, old_switch = ((side["enabled"], side["variants"]) for side in (after, before))
        if stored is None or switch != old_switch:
            places.add(stored is None, place | {"enabled": switch[0], "variants": switch[1]})
        old = {strategy["id"]: strategy for strategy in before["strategies"]}
        for strategy in after["strategies"]:
            key = strategy["id"]
            former = old.pop(key, None)
            if former == strategy:
                continue
            columns = {field.column: strategy[field.member] for field in FIELDS}
            strategies.add(former is None, {"id": key, **place, "created_at": now, **columns})
            linked = former["segments"] if former else []
            if linked != strategy["segments"]:
                unlinked += [key] if linked else []
                links += [(key, segment) for segment in strategy["segments"]]
        gone += old
        unlinked += [key for key, strategy in old.items() if strategy["segments"]]
    places.write("projects_flagenvironment", _PLACES)
    if unlinked:
        execute("DELETE FROM projects_strategysegment WHERE strategy_id = ANY(%s::uuid[])", [unlinked])
    if gone:
        execute("DELETE FROM projects_strategy WHERE id = ANY(%s::uuid[])", [gone])
    strategies.write("projects_strategy", _STRATEGIES)
    if links:
        execute(_LINKS, [list(column) for column in zip(*links, strict=True)])


def replace_parents(parents: Mapping[int, Iterable[Mapping[str, Any]]]) -> None:
    """Replaces all parents of flags, by the flags' ids: the order of the rows is theirs. Insert new flags before."""
    documents = [(flag, parent) for flag, listed in parents.items() for parent in listed]
    named = Flag.objects.filter(name__in={parent["feature"] for _, parent in documents})
    ids = dict(named.values_list("name", "pk")) if documents else {}
    rows = (
        (flag, ids[parent["feature"]], parent["enabled"], _to_column(parent["variants"]))
        for flag, parent in documents
    )
    execute("DELETE FROM projects_dependency WHERE flag_id = ANY(%s)", [list(parents)])
    copy_rows("projects_dependency", ("flag_id", "parent_id", "enabled", "variants"), rows)


class _Rows:
    """Rows of a table by columns, edited and new ones."""

    def __init__(self) -> None:
        self.edited, self.new = list[Document](), list[Document]()

    def add(self, is_new: bool, row: Document) -> None:
        (self.new if is_new else self.edited).append(row)

    def write(self, table: str, statement: str) -> None:
        if len(self.new) >= MANY:
            copy_rows(table, [*self.new[0]], ([*map(_to_column, row.values())] for row in self.new))
            self.new = []
        if rows := [*self.new, *self.edited]:
            execute(statement, [orjson.dumps(rows).decode()])


def _to_column(value: Any) -> Any:
    return orjson.dumps(value).decode() if isinstance(value, (list, dict)) else value
