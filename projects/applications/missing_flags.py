"""Missing flags that applications request, for pages: the applications, and where to create the flags."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from django.utils.http import urlencode

from groups.access import Caller, Permission
from projects.access import list_projects_with
from projects.applications.documents import find_readable_applications, find_unknown_flags
from projects.console import application_url, project_url
from projects.models import Application, Project, ProjectApplication

DEFAULT = "default"
MAX_SHOWN = 20


@dataclass(frozen=True, slots=True)
class MissingFlag:
    """``applications``: names with URLs. ``create_url``: "" for callers who may not create flags anywhere."""

    name: str
    applications: Sequence[tuple[str, str]]
    environments: Sequence[str]
    asked_at: datetime
    create_url: str


def list_missing_flags(caller: Caller, application: Application | None = None) -> list[MissingFlag]:
    """The missing flags of one application, or of all that the caller may read, by name. At most five queries.

    A flag is created in the project whose flags its application uses, otherwise in the default project or the first
    one in which the caller may create flags.
    """
    applications = find_readable_applications(caller)
    if application is not None:
        applications = applications.filter(pk=application.pk)
    rows = find_unknown_flags().filter(application_id__in=applications.values("pk"))
    names = rows.order_by("name").values_list("name", flat=True).distinct()[:MAX_SHOWN]
    uses = list(
        rows.filter(name__in=list(names))
        .order_by("name", "environment", "application_id")
        .values_list("name", "environment", "application_id", "seen_at")
    )
    if not uses:
        return []
    known = dict(applications.filter(pk__in={use[2] for use in uses}).values_list("pk", "name"))
    homes = _map_homes(caller, list(known))
    anywhere = _find_any_project(caller)
    return [
        MissingFlag(
            name,
            [
                (known[pk], application_url(known[pk]))
                for pk in sorted({use[2] for use in by_name} & known.keys())
            ],
            sorted({use[1] for use in by_name}),
            max(use[3] for use in by_name),
            _create_url(name, next((homes[use[2]] for use in by_name if use[2] in homes), anywhere)),
        )
        for name, by_name in ((name, list(group)) for name, group in groupby(uses, key=lambda use: use[0]))
    ]


def _map_homes(caller: Caller, applications: Sequence[int]) -> Mapping[int, str]:
    """For each application, one of its projects in which the caller may create flags."""
    lines = ProjectApplication.objects.filter(application_id__in=applications).order_by("-project_id")
    return {
        application: project
        for application, project in lines.values_list("application_id", "project_id")
        if caller.can_read(project) and caller.can(Permission.CREATE_FEATURE, project=project)
    }


def _find_any_project(caller: Caller) -> str:
    if caller.can(Permission.CREATE_FEATURE, project=DEFAULT) and caller.can_read(DEFAULT):
        return DEFAULT
    projects = Project.objects.active().readable_by(caller).order_by("id")
    if not caller.is_admin:
        projects = projects.filter(id__in=list_projects_with(caller, Permission.CREATE_FEATURE))
    first = projects.values_list("id", flat=True).first()
    return first if first and caller.can(Permission.CREATE_FEATURE, project=first) else ""


def _create_url(name: str, project: str) -> str:
    return f"{project_url(project, 'flag-new')}?{urlencode({'name': name})}" if project else ""
