"""Cells of a list of flags, for each flag and environment: state, share, conditions, last evaluation."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.lists.charts import format_percent
from projects.flags.insights.evaluations import read_last_evaluations
from projects.flags.lists.people import People, measure_people
from projects.models import Dependency, Environment, Flag, FlagEnvironment, ProjectEnvironment

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
