"""Cells of a list of flags, for each flag and environment: state, share, conditions, last evaluation.

Rows for lists of flags in the console, with a cell and a toggle for each environment.

The share of people for whom a flag is on. The evaluation engine's app provides the measurement.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.hook import Hook
from flagadmin.core.lists.charts import format_percent
from groups.access import Caller, Permission
from projects.console import check_permissions, flag_url
from projects.flags.insights.evaluations import read_last_evaluations
from projects.models import (
    Dependency,
    Environment,
    FavoriteFlag,
    Flag,
    FlagEnvironment,
    FlagTag,
    FlagType,
    ProjectEnvironment,
)

Place = tuple[str, str, str]
"""The project, the environment and the name of a flag."""


@dataclass(frozen=True, slots=True)
class People:
    """``on`` is the percentage of users for whom a flag is on, ``unknown`` that of users for whom only an SDK can tell.

    ``users`` is their number.
    """

    on: float
    unknown: float
    users: int
    depends_on_time: bool = False


def _measure_nobody(places: Collection[Place]) -> Mapping[Place, People]:
    return {}


measure_people = Hook("projects.flags.lists.cells.measure_people", _measure_nobody)
"""The share of each of these active flags, as far as it can be measured."""


# SQL for a strategy ``s``: whether it applies only to some requests. Without a percentage, it names users, addresses
# or hosts.
CONDITIONAL = """(s.share IS NULL OR s.constraints <> '[]' OR EXISTS (
     SELECT FROM projects_strategysegment link WHERE link.strategy_id = s.id))"""

_STRATEGIES = f"""
SELECT s.flag_id, s.environment_id, count(*) FILTER (WHERE NOT s.disabled),
       max(s.share) FILTER (WHERE NOT s.disabled),
       coalesce(bool_or({CONDITIONAL}) FILTER (WHERE NOT s.disabled), false)
  FROM projects_strategy s WHERE s.flag_id = ANY(%s) GROUP BY 1, 2
"""  # noqa: S608 - constants
_NONE = (None, 100.0, False)
"""The cell without strategies: the flag is on for everyone."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A flag in an environment.

    ``strategies`` are the enabled ones. ``share`` is the percentage of people for whom it is on, for the share bar: 0
    if the flag is off, None if no number fits (only named users, or only an SDK can tell). ``text`` is its text:
    "Off", "16.6 %", "Targeted list", "Can't tell". ``set_text`` is what is set, without the people who meet it: "100 %
    with conditions", "3 strategies". ``why`` explains the difference; "" without one. ``conditional``: at least one
    strategy has conditions.
    """

    environment: str
    production: bool
    enabled: bool
    strategies: int
    share: float | None
    text: str
    conditional: bool
    last_evaluated: datetime | None
    set_text: str = ""
    why: str = ""

    @property
    def is_one_percentage(self) -> bool:
        """Whether the flag is on by a single strategy with a percentage."""
        return self.enabled and self.strategies == 1 and self.set_text != "Targeted list"


@dataclass(frozen=True, slots=True)
class FlagCells:
    """The cells of a flag in the environments of its project, in their order. ``parents``: names of flags."""

    flag: Flag
    cells: Sequence[Cell]
    parents: Sequence[str]
    last_evaluated: datetime | None


def read_flag_cells(flags: Sequence[Flag], *, measured: bool = True) -> list[FlagCells]:
    """One entry per flag, in order. Five queries for any number of flags, and those of ``measure_people`` unless
    ``measured`` is False, which has the ``set_text`` as ``text``.
    """
    ids = [flag.pk for flag in flags]
    seen, parents, strategies = read_last_evaluations(ids), _read_parents(ids), _read_strategies(ids)
    enabled = set(
        FlagEnvironment.objects.filter(flag_id__in=ids, enabled=True).values_list("flag_id", "environment_id")
    )
    environments = _read_environments({flag.project_id for flag in flags})
    rows = [
        FlagCells(
            flag=flag,
            cells=[
                _make_cell(
                    name,
                    kind == Environment.PRODUCTION,
                    (flag.pk, name) in enabled,
                    *strategies.get((flag.pk, name), _NONE),
                    seen[flag.pk].get(name),
                )
                for name, kind in environments[flag.project_id]
            ],
            parents=parents[flag.pk],
            last_evaluated=max(seen[flag.pk].values(), default=None),
        )
        for flag in flags
    ]
    return _measure(rows) if measured else rows


def read_texts_when_on(ids: Sequence[int], environment: str) -> dict[int, str | None]:
    """What is set for these flags, in words, if they were on; None without an enabled strategy. One query."""
    strategies = _read_strategies(ids)
    texts: dict[int, str | None] = {}
    for flag_id in ids:
        count, share, conditional = strategies.get((flag_id, environment), _NONE)
        cell = _make_cell(environment, False, True, count, share, conditional, None)
        texts[flag_id] = cell.set_text if count else None
    return texts


def _make_cell(
    name: str,
    production: bool,
    enabled: bool,
    count: int | None,
    share: float | None,
    conditional: bool,
    seen: datetime | None,
) -> Cell:
    """The cell as it is set. Its ``why`` is the number of strategies, or their conditions."""
    why = ""
    if not enabled:
        share, text = 0.0, "Off"
    elif count == 0:  # all strategies are disabled
        share, text = 0.0, "0 %"
    elif count is not None and count > 1:
        share, text = None, f"{count:,} strategies"
        why = text
    elif share is None:
        text = "Targeted list"
    else:
        why = f"{share:g} % of those who meet its conditions" if conditional else ""
        text = f"{share:g} % with conditions" if conditional else f"{share:g} %"
    return Cell(name, production, enabled, count or 0, share, text, enabled and conditional, seen, text, why)


def _measure(rows: Sequence[FlagCells]) -> list[FlagCells]:
    """The same with the shares of people, where they may differ from what is set."""
    places = {
        (row.flag.project_id, cell.environment, row.flag.name)
        for row in rows
        if not row.flag.is_archived
        for cell in row.cells
        if _may_differ(row, cell)
    }
    people = measure_people(places)
    return [
        replace(
            row,
            cells=[
                _name_people(row, cell, people.get((row.flag.project_id, cell.environment, row.flag.name)))
                for cell in row.cells
            ],
        )
        for row in rows
    ]


def _may_differ(row: FlagCells, cell: Cell) -> bool:
    return cell.enabled and (bool(cell.why) or bool(row.parents and cell.share))


def _name_people(row: FlagCells, cell: Cell, people: People | None) -> Cell:
    if people is None:
        return cell
    needs = f"needs {', '.join(row.parents)}" if row.parents else ""
    if people.unknown:
        why = (cell.why, needs, "only an SDK can tell")
        return replace(cell, share=None, text=_format_range(people), why=", ".join(filter(None, why)))
    differs = cell.share is None or round(people.on, 1) != cell.share
    why_less = ", ".join(filter(None, (cell.why, needs))) if differs else ""
    return replace(cell, share=people.on, text=format_percent(people.on), why=why_less)


def _format_range(people: People) -> str:
    if not people.on:
        return "Can't tell"
    return f"{people.on:.0f} to {people.on + people.unknown:.0f} %"


def _read_strategies(ids: Sequence[int]) -> dict[tuple[int, str], tuple[int | None, float | None, bool]]:
    """The number of enabled strategies, the largest share and whether there are conditions."""
    return {
        (flag_id, environment): (count, None if share is None else float(share), conditional)
        for flag_id, environment, count, share, conditional in fetch_rows(_STRATEGIES, [list(ids)])
    }


def _read_parents(ids: Sequence[int]) -> dict[int, list[str]]:
    parents: dict[int, list[str]] = defaultdict(list)
    rows = Dependency.objects.filter(flag_id__in=ids).order_by("id")
    for flag_id, name in rows.values_list("flag_id", "parent__name"):
        parents[flag_id].append(name)
    return parents


def _read_environments(projects: set[str]) -> dict[str, list[tuple[str, str]]]:
    environments: dict[str, list[tuple[str, str]]] = defaultdict(list)
    rows = ProjectEnvironment.objects.filter(project_id__in=projects).order_by(
        "environment__sort_order", "environment_id"
    )
    for project, name, kind in rows.values_list("project_id", "environment_id", "environment__type"):
        environments[project].append((name, kind))
    return environments


IDLE, RECENT = timedelta(days=30), timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Toggle:
    """The toggle of a flag in an environment.

    ``locked``: the caller may not use it. ``asks``: a confirmation comes first. ``shares``: the caller may change the
    percentage of the flag's one strategy there.
    """

    environment: str
    enabled: bool
    locked: bool
    asks: bool
    shares: bool = False


@dataclass(frozen=True, slots=True)
class FlagRow:
    """A row in a list of flags. ``parents``: the flags that it depends on.

    ``cells`` has None for an environment that its project does not use. ``may``: "edit" and "archive".
    """

    flag: Flag
    url: str
    may: Mapping[str, bool]
    type_name: str
    favorite: bool
    tags: Sequence[str]
    cells: Sequence[tuple[Cell, Toggle] | None]
    parents: Sequence[str]
    last_evaluated: datetime | None

    @property
    def is_idle(self) -> bool:
        """Whether it was evaluated, but not recently."""
        return self.last_evaluated is not None and timezone.now() - self.last_evaluated > IDLE

    @property
    def is_recent(self) -> bool:
        """Whether it is still evaluated: applications request it although it may be archived."""
        return self.last_evaluated is not None and timezone.now() - self.last_evaluated < RECENT

    @property
    def is_selectable(self) -> bool:
        """Whether the caller has any action on it."""
        return any(self.may.values()) or any(not place[1].locked for place in self.cells if place)


def make_flag_rows(flags: Sequence[Flag], environments: Sequence[str], *, caller: Caller) -> list[FlagRow]:
    """One row per flag with cells for these environments, in eight queries for any number of flags."""
    ids = [flag.pk for flag in flags]
    favorites = set(
        FavoriteFlag.objects.filter(user=caller.id, flag__in=ids).values_list("flag_id", flat=True)
    )
    types, tags = dict(FlagType.objects.values_list("id", "name")), _read_tags(ids)
    may = {project_id: _may(caller, project_id) for project_id in {flag.project_id for flag in flags}}
    return [
        FlagRow(
            flag=row.flag,
            url=flag_url(row.flag.project_id, row.flag.name),
            may=may[row.flag.project_id],
            type_name=types.get(row.flag.type, row.flag.type),
            favorite=row.flag.pk in favorites,
            tags=tags[row.flag.pk],
            cells=_pick_cells(row, environments, caller=caller),
            parents=row.parents,
            last_evaluated=row.last_evaluated,
        )
        for row in read_flag_cells(flags)
    ]


def toggle_of(flag: Flag, place: dict[str, Any], *, caller: Caller) -> Toggle:
    locked = flag.is_archived or not may_toggle(caller, flag.project_id, place["name"])
    return Toggle(place["name"], place["enabled"], locked, place["type"] == Environment.PRODUCTION)


def may_toggle(caller: Caller, project_id: str, environment: str) -> bool:
    return caller.can(Permission.UPDATE_FEATURE_ENVIRONMENT, project=project_id, environment=environment)


def _may(caller: Caller, project_id: str) -> Mapping[str, bool]:
    return check_permissions(
        caller, project_id, edit=Permission.UPDATE_FEATURE, archive=Permission.DELETE_FEATURE
    )


def _pick_cells(
    row: FlagCells, environments: Sequence[str], *, caller: Caller
) -> list[tuple[Cell, Toggle] | None]:
    cells = {cell.environment: (cell, _toggle(row.flag, cell, caller=caller)) for cell in row.cells}
    return [cells.get(name) for name in environments]


def _toggle(flag: Flag, cell: Cell, *, caller: Caller) -> Toggle:
    locked = flag.is_archived or not may_toggle(caller, flag.project_id, cell.environment)
    place = {"project": flag.project_id, "environment": cell.environment}
    shares = cell.is_one_percentage and caller.can(Permission.UPDATE_FEATURE_STRATEGY, **place)
    return Toggle(cell.environment, cell.enabled, locked, cell.production, shares)


def _read_tags(ids: Sequence[int]) -> dict[int, list[str]]:
    tags: dict[int, list[str]] = defaultdict(list)
    rows = FlagTag.objects.filter(flag__in=ids).order_by("tag_type", "value")
    for flag_id, kind, value in rows.values_list("flag_id", "tag_type", "value"):
        tags[flag_id].append(f"{kind}:{value}")
    return tags
