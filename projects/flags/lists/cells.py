"""Cells of a list of flags, for each flag and environment: state, share, conditions, last evaluation."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from flagadmin.core.db.statements import fetch_rows
from projects.flags.insights.evaluations import read_last_evaluations
from projects.models import Dependency, Environment, Flag, FlagEnvironment, ProjectEnvironment

# SQL of a strategy ``s``: whether it is limited to some requests. One without a share names users, addresses or hosts.
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

    ``strategies`` are the enabled ones. ``share`` is the percentage for the share bar: 0 if the flag is off,
    None if no number says it (several strategies, or only named users). ``text`` says it: "Off", "10 %",
    "100 %", "3 strategies", "Targeted list". ``conditional``: at least one strategy has conditions.
    """

    environment: str
    production: bool
    enabled: bool
    strategies: int
    share: float | None
    text: str
    conditional: bool
    last_evaluated: datetime | None


@dataclass(frozen=True, slots=True)
class FlagCells:
    """The cells of a flag in the environments of its project, in their order. ``parents``: names of flags."""

    flag: Flag
    cells: Sequence[Cell]
    parents: Sequence[str]
    last_evaluated: datetime | None


def read_flag_cells(flags: Sequence[Flag]) -> list[FlagCells]:
    """One entry per flag, in order. Five queries for any number of flags."""
    ids = [flag.pk for flag in flags]
    seen, parents, strategies = read_last_evaluations(ids), _read_parents(ids), _read_strategies(ids)
    enabled = set(
        FlagEnvironment.objects.filter(flag_id__in=ids, enabled=True).values_list("flag_id", "environment_id")
    )
    environments = _read_environments({flag.project_id for flag in flags})
    return [
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


def read_texts_when_on(ids: Sequence[int], environment: str) -> dict[int, str | None]:
    """Reads what the cells of these flags would say if they were on; None without an enabled strategy. One query."""
    strategies = _read_strategies(ids)
    texts: dict[int, str | None] = {}
    for flag_id in ids:
        count, share, conditional = strategies.get((flag_id, environment), _NONE)
        cell = _make_cell(environment, False, True, count, share, conditional, None)
        texts[flag_id] = cell.text if count else None
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
    if not enabled:
        share, text = 0.0, "Off"
    elif count == 0:  # all strategies are disabled
        share, text = 0.0, "0 %"
    elif count is not None and count > 1:
        share, text = None, f"{count:,} strategies"
    else:
        text = "Targeted list" if share is None else f"{share:g} %"
    return Cell(name, production, enabled, count or 0, share, text, enabled and conditional, seen)


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
