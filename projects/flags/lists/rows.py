"""Rows for lists of flags in the console, with a cell and a toggle for each environment."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from groups.access import Caller, Permission
from projects.console import check_permissions, flag_url
from projects.flags.lists.cells import Cell, FlagCells, read_flag_cells
from projects.models import Environment, FavoriteFlag, Flag, FlagTag, FlagType

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
