"""Suggestions for a search without hits: flags, projects, pages and actions with a similar spelling."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flagadmin.console.search.commands import find_similar_commands, find_similar_flags
from flagadmin.console.search.hits import Group
from flagadmin.console.search.kinds import KINDS, MAX_HITS, Kind
from flagadmin.core.db.similar import find_similar_rows
from groups.access import Caller
from projects.models import Project


def find_similar_groups(caller: Caller, words: Sequence[str]) -> list[Group | None]:
    """Two queries, and those of the states of what was found."""
    rows_by_kind: list[tuple[Kind, list[Any]]] = [
        (KINDS[0], find_similar_flags(caller, words, MAX_HITS)),
        (KINDS[1], find_similar_rows(Project.objects.active().readable_by(caller), words, "name", MAX_HITS)),
    ]
    groups: list[Group | None] = [
        replace(kind.group_of(rows, len(rows), caller, ()), label=f"{kind.label} with a similar name")
        for kind, rows in rows_by_kind
        if rows
    ]
    return [*groups, find_similar_commands(caller, words)]
