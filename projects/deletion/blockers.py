"""Checks that must pass before a project can be deleted. Read-only."""

from collections.abc import Callable, Iterator
from functools import partial

from flagadmin.core.errors import InvalidOperation, Problem, choices
from projects.flags.bulk_delete import check_no_children
from projects.models import Flag, Project, StrategySegment
from projects.projects.actions import check_no_active_flags, check_not_default


def deletion_checks(project: Project) -> Iterator[Callable[[], None]]:
    """The checks to run before deleting the project. Each raises InvalidOperation if it fails."""
    yield partial(check_not_default, project, "deleted")
    yield partial(check_no_active_flags, project, "deleted")
    yield partial(check_no_borrowers, project)
    yield partial(check_no_children, Flag.objects.filter(project=project), "deleted")


def check_no_borrowers(project: Project) -> None:
    """Raises InvalidOperation naming flags of other projects whose strategies use this project's segments."""
    links = StrategySegment.objects.filter(segment__project=project)
    elsewhere = links.exclude(strategy__flag__project=project)
    rows = elsewhere.order_by("segment__name", "strategy__flag__name")
    pairs = list(rows.values_list("segment__name", "strategy__flag__name").distinct())
    if pairs:
        raise InvalidOperation(
            f"Flags of other projects use segments of {project.pk}: {choices({flag for _, flag in pairs})}.",
            details=[Problem(segment, f"{flag} uses it") for segment, flag in pairs],
        )
