"""Collects the blockers of a project's deletion and its losses. Read-only."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import Max, QuerySet

from flagadmin.core.errors import AppError, InvalidOperation, Problem, choices, collect_errors
from groups.access import DEFAULT_PROJECT, Caller
from groups.models import ApiToken, ApiTokenProject, Grant
from projects.access import access_project
from projects.deletion.kept_names import PROJECT, list_users
from projects.flags.archive.actions import make_orphans_error, read_names_and_plans
from projects.models import (
    Application,
    ContextField,
    Dependency,
    Flag,
    FlagLastSeen,
    FlagUsage,
    Project,
    Segment,
    StrategySegment,
)
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
        """The errors of a deletion, which raises only the first."""
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


@dataclass(frozen=True, slots=True)
class LastUse:
    """The last evaluation of a flag by an application."""

    application: str
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class ActiveFlag:
    """An active flag, which blocks deletion.

    ``seen_at``: when SDKs last reported it. ``used_by``: most recent first.
    """

    name: str
    seen_at: datetime | None
    used_by: list[LastUse]


@dataclass(frozen=True, slots=True)
class Access:
    """A role granted in the project, with the ``id`` and ``name`` of the user or group."""

    id: int
    name: str
    role: str
    is_service: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionPlan:
    """The losses from deleting a project, and the blockers.

    ``deleted_tokens`` can access only this project; ``narrowed_tokens`` keep the other projects in their scope.
    ``blockers`` are the error messages that deletion would raise. ``name_users`` stay, without effect.
    """

    project: Project
    blockers: list[str]
    active: list[ActiveFlag]
    dependants: Sequence[Dependant]
    archived: list[str]
    deleted_tokens: list[str]
    narrowed_tokens: list[str]
    groups: list[Access]
    people: list[Access]
    segments: list[str]
    context_fields: list[str]
    saved_contexts: list[str]
    change_requests: int
    release_plans: list[str]
    release_templates: list[str]
    name_users: list[str]

    @property
    def is_default(self) -> bool:
        return self.project.pk == DEFAULT_PROJECT

    @property
    def blocked(self) -> bool:
        return bool(self.blockers)

    @property
    def active_names(self) -> list[str]:
        return [flag.name for flag in self.active]

    @property
    def document(self) -> dict[str, Any]:
        """The plan without timestamps. A shown plan is current while its document is the same."""
        content = asdict(replace(self, project=self.project.pk, active=[]))  # type: ignore[arg-type]
        content["active"] = [
            (flag.name, sorted(use.application for use in flag.used_by)) for flag in self.active
        ]
        return content


def plan_project_deletion(project_id: str, *, caller: Caller) -> DeletionPlan:
    """The deletion plan, in a fixed number of queries.

    Raises NotFound. Checking the permission to delete is up to the caller.
    """
    project = access_project(caller, project_id)
    blockers = find_blockers(project)
    deleted, narrowed = _read_tokens(project)
    groups, people = _read_access(project)
    archived, release_plans = read_names_and_plans(Flag.objects.archived().filter(project=project))
    return DeletionPlan(
        project=project,
        blockers=[error.message for error in blockers.errors],
        active=_read_active_flags(blockers),
        dependants=blockers.dependants,
        archived=archived,
        deleted_tokens=deleted,
        narrowed_tokens=narrowed,
        groups=groups,
        people=people,
        segments=_read_names(Segment.objects.filter(project=project)),
        context_fields=_read_names(ContextField.objects.filter(project=project)),
        saved_contexts=_read_names(find_saved_contexts(project)),
        change_requests=_find_sent_requests(project).count(),
        release_plans=release_plans,
        release_templates=_read_names(_find_templates(project)),
        name_users=list_users(PROJECT, [project.pk], caller),
    )


def find_saved_contexts(project: Project) -> QuerySet[Any]:
    """The playground's saved contexts of the project, which are deleted with it."""
    return project.saved_contexts.all()


def _find_sent_requests(project: Project) -> QuerySet[Any]:
    """Excludes drafts, which are private to their authors."""
    return project.change_requests.exclude(state="Draft")


def _find_templates(project: Project) -> QuerySet[Any]:
    return project.release_templates.all()


def _read_names(rows: QuerySet[Any]) -> list[str]:
    return list(rows.order_by("name").values_list("name", flat=True))


def _read_active_flags(blockers: Blockers) -> list[ActiveFlag]:
    ids = Flag.objects.active().filter(project=blockers.project).order_by().values("pk")
    seen: dict[int, datetime] = dict(
        FlagLastSeen.objects.filter(flag_id__in=ids)
        .order_by()
        .values("flag_id")
        .annotate(last=Max("seen_at"))
        .values_list("flag_id", "last")
    )
    used_by = _read_uses(ids)
    return [ActiveFlag(name, seen.get(pk), used_by.get(pk, [])) for pk, name in blockers.active.items()]


def _read_uses(flag_ids: QuerySet[Any]) -> dict[int, list[LastUse]]:
    """The applications that used each flag, most recent first. Two queries."""
    usage = FlagUsage.objects.filter(flag_id__in=flag_ids).order_by()
    last = usage.values("flag_id", "application_id").annotate(last=Max("last_used_at")).order_by("-last")
    rows = list(last.values_list("flag_id", "application_id", "last"))
    applications = Application.objects.filter(pk__in={application_id for _, application_id, _ in rows})
    names = dict(applications.values_list("pk", "name"))
    uses: dict[int, list[LastUse]] = {}
    for flag_id, application_id, moment in rows:
        if application_id in names:
            uses.setdefault(flag_id, []).append(LastUse(names[application_id], moment))
    return uses


def _read_tokens(project: Project) -> tuple[list[str], list[str]]:
    tokens = list(ApiToken.objects.filter(scopes__project=project).order_by("name", "environment_id"))
    scopes = read_scopes(tokens)
    own = [_name_token(token) for token in tokens if is_own(token, project, scopes)]
    return own, [_name_token(token) for token in tokens if not is_own(token, project, scopes)]


def _name_token(token: ApiToken) -> str:
    """Its name and environment, because tokens of several environments often share a name."""
    return f"{token.name} ({token.environment_id or 'all environments'})"


def _read_access(project: Project) -> tuple[list[Access], list[Access]]:
    groups, people = [], []
    grants = Grant.objects.filter(project=project).select_related("role", "user", "group")
    for grant in grants.order_by("role_id", "id"):
        if grant.user is not None:
            people.append(
                Access(grant.user.pk, grant.user.display_name, grant.role.name, grant.user.is_service)
            )
        elif grant.group is not None:
            groups.append(Access(grant.group.pk, grant.group.name, grant.role.name))
    return groups, people


Scopes = dict[int, list[str]]


def is_own(token: ApiToken, project: Project, scopes: Scopes) -> bool:
    """Whether the token's scope is only this project."""
    return not token.all_projects and scopes[token.pk] == [project.pk]


def read_scopes(tokens: Iterable[ApiToken]) -> Scopes:
    """The ids of the projects in each token's scope, by token id."""
    scopes: Scopes = {token.pk: [] for token in tokens}
    rows = ApiTokenProject.objects.filter(token_id__in=list(scopes)).order_by("project_id")
    for token_id, project_id in rows.values_list("token_id", "project_id"):
        scopes[token_id].append(project_id)
    return scopes
