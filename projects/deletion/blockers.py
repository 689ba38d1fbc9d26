"""Finds what prevents the deletion of a project. Read-only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from flagadmin.core.errors import AppError, InvalidOperation, Problem, collect_errors
from flagadmin.core.wording import choices
from projects.flags.archive.delete import make_orphans_error
from projects.models import Dependency, Flag, Project, StrategySegment
from projects.projects.actions import check_not_default, make_active_flags_error


@dataclass(frozen=True, slots=True)
class Dependant:
    """A flag of another project that uses a parent flag or a segment of this one."""

    name: str
    needs: str
    project: str
    by_segment: bool = False


@dataclass(frozen=True, slots=True)
class Blockers:
    """The obstacles to deleting the project. ``active``: the names of its active flags by id."""

    project: Project
    active: Mapping[int, str]
    dependants: Sequence[Dependant]

    @property
    def errors(self) -> list[AppError]:
        """The errors of a deletion, which raises the first of them."""
        errors = collect_errors(partial(check_not_default, self.project, "deleted"))
        if self.active:
            errors.append(make_active_flags_error(self.project, list(self.active.values()), "deleted"))
        if borrowers := self._needs(by_segment=True):
            errors.append(
                InvalidOperation(
                    f"Flags of other projects use segments of {self.project.pk}: "
                    f"{choices({flag for _, flag in borrowers})}.",
                    details=[Problem(segment, f"{flag} uses it") for segment, flag in borrowers],
                )
            )
        if children := self._needs(by_segment=False):
            errors.append(make_orphans_error(children, "deleted"))
        return errors

    def _needs(self, *, by_segment: bool) -> list[tuple[str, str]]:
        """Sorted (parent or segment, flag) names."""
        dependants = (each for each in self.dependants if each.by_segment == by_segment)
        return sorted((dependant.needs, dependant.name) for dependant in dependants)


def find_blockers(project: Project) -> Blockers:
    """Three queries."""
    active = Flag.objects.active().filter(project=project).order_by("name")
    return Blockers(project, dict(active.values_list("pk", "name")), _find_dependants(project))


def _find_dependants(project: Project) -> list[Dependant]:
    """Flags of other projects that use this project's segments, or are active with a parent in it."""
    children = Dependency.objects.filter(parent__project=project, flag__archived_at=None)
    children = children.exclude(flag__project=project).order_by("flag__name", "parent__name")
    links = StrategySegment.objects.filter(segment__project=project)
    links = links.exclude(strategy__flag__project=project).order_by("strategy__flag__name", "segment__name")
    borrowed = links.values_list(
        "strategy__flag__name", "segment__name", "strategy__flag__project"
    ).distinct()
    rows = children.values_list("flag__name", "parent__name", "flag__project")
    return [
        *(Dependant(*row) for row in rows),
        *(Dependant(*row, by_segment=True) for row in borrowed),
    ]
