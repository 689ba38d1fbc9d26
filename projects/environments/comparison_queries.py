"""The flags of a project as they are in two of its environments, and those of them that a page lists."""

from collections.abc import Iterable, Sequence

from django.http import QueryDict

from flagadmin.core.errors import ValidationError
from projects.environments.comparison import find_differences, read_configurations
from projects.environments.comparison_rows import ComparedFlag
from projects.flags.lists.conditions import text_query
from projects.models import Environment, Flag, Project

ALL, DIFFERS, SAME = "all", "", "same"


def choose_environments(names: Sequence[str], source: str, target: str) -> tuple[str, str]:
    """Chooses the given environments, otherwise into production, from the first other one. Raises ValidationError."""
    for path, name in (("from", source), ("to", target)):
        if name and name not in names:
            raise ValidationError.at(path, f"{name} is not an environment of this project")
    production = set(Environment.objects.production().values_list("name", flat=True))
    fallbacks = [name for name in names if name in production] or list(names[-1:])
    target = target or next((name for name in fallbacks if name != source), names[-1])
    return source or next((name for name in names if name != target), target), target


def compare_flags(project: Project, environments: tuple[str, str], *, text: str = "") -> list[ComparedFlag]:
    """The project's active flags by name, with what differs. Five queries for 2,000 flags."""
    flags = Flag.objects.active().filter(project=project)
    if text:
        flags = flags.filter(text_query(text))
    rows = list(flags.order_by("name").values_list("pk", "name", "description"))
    pairs = read_configurations([row[0] for row in rows], environments)
    return [
        ComparedFlag(pk, name, description, pairs[pk], find_differences(pairs[pk]))
        for pk, name, description in rows
    ]


def select_flags(flags: Iterable[ComparedFlag], *, show: str, kind: str) -> list[ComparedFlag]:
    """Selects the flags that the page lists with these filters."""
    if show == SAME:
        return [flag for flag in flags if not flag.kinds]
    if show == ALL:
        return list(flags)
    return [flag for flag in flags if flag.kinds and (not kind or kind in flag.kinds)]


def select_matching(project: Project, environments: tuple[str, str], query: QueryDict) -> list[ComparedFlag]:
    """Selects the flags that the page with this query string lists, on all its pages."""
    flags = compare_flags(project, environments, text=query.get("q", "").strip())
    return select_flags(flags, show=query.get("show", DIFFERS), kind=query.get("in", ""))
