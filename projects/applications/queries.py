"""Reads a project's applications list: its filters and sort orders, and narrow rows.

Missing flags that applications request, for pages: the applications, and where to create the flags.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, groupby

import django_filters
from django import forms
from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.http import urlencode

from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.db.transactions import transactional
from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from flagadmin.core.lists.filters import MAX_LENGTH, Direction, ListFilter, Text, WholeNumber
from groups.access import Caller, Permission
from projects.access import list_projects_with
from projects.applications.documents import find_readable_applications, find_unknown_flags
from projects.applications.sdk_versions import group_sdks, is_release, split_sdk
from projects.applications.store_report import refresh_applications
from projects.console import application_url, project_url
from projects.models import Application, Project, ProjectApplication

SORT_KEYS = {
    "appName": "name",
    "lastSeen": "last_seen_at",
    "environments": "environment_count",
    "instances": "instance_count",
    "sdks": "sdk_count",
}
SEPARATOR = "\x1f"  # between the parts of a row's ``search``
REFRESHED_AT_ONCE = 1000

_STALE = """
SELECT application_id FROM projects_projectapplication
 WHERE project_id = %s AND oldest_seen_at < %s ORDER BY application_id
"""

# The index returns instance ids in order, so the limit ends the scan.
_INSTANCES = """
SELECT line.application_id, ARRAY(
       SELECT DISTINCT i.instance_id FROM projects_applicationinstance i
        WHERE i.application_id = line.application_id AND i.environment = ANY(line.environments)
          AND i.seen_at >= %s ORDER BY 1 LIMIT %s)
  FROM projects_projectapplication line WHERE line.project_id = %s AND line.application_id = ANY(%s)
"""


def find_project_applications(project_id: str) -> QuerySet[ProjectApplication]:
    """The rows of a project's list. First rebuilds those whose instances have left the window."""
    _refresh_lines(project_id, timezone.now() - settings.APPLICATION_INSTANCE_WINDOW)
    return ProjectApplication.objects.filter(project_id=project_id)


def search(lines: QuerySet[ProjectApplication], terms: Iterable[str]) -> QuerySet[ProjectApplication]:
    """Rows with one of the terms in their name, environment or SDK, ignoring case.

    All rows if there are none.
    """
    matches = Q()
    for term in terms:
        # Names never contain the separator, so a term that does matches nothing.
        matches |= Q(pk__in=[]) if SEPARATOR in term else Q(search__contains=term.casefold())
    return lines.filter(matches)


def sort(
    lines: QuerySet[ProjectApplication], key: str, *, descending: bool = False
) -> QuerySet[ProjectApplication]:
    """Sorted by one of SORT_KEYS, then by name. Keys of other lists sort by name."""
    column = SORT_KEYS.get(key, "name")
    return lines.order_by(f"-{column}" if descending else column, "name")


def read_page(project_id: str, lines: QuerySet[ProjectApplication]) -> list[ProjectApplication]:
    """The complete rows of a page, a slice of the sorted rows. Only ids are sorted."""
    page_ids = lines.values("application_id")
    whole = ProjectApplication.objects.filter(project_id=project_id, application_id__in=page_ids)
    return list(whole.order_by(*lines.query.order_by))


def list_application_documents(project_id: str, lines: Sequence[ProjectApplication]) -> list[Document]:
    """The documents of one page, in order. One SQL statement, for an empty page none."""
    instances = _read_instances(project_id, [line.application_id for line in lines]) if lines else {}
    return [
        {
            "name": line.name,
            "environments": line.environments,
            "instances": instances.get(line.application_id, []),
            "sdks": group_sdks(line.sdks),
            "instanceCount": line.instance_count,
            "lastSeen": iso(line.last_seen_at),
        }
        for line in lines
    ]


def read_oldest_versions(project_id: str) -> dict[str, str]:
    """The oldest version of each SDK that is used in several versions in the project. One SQL statement."""
    lines = ProjectApplication.objects.filter(project_id=project_id).order_by()
    sdks = group_sdks(chain.from_iterable(lines.values_list("sdks", flat=True).distinct()))
    return _find_range(sdks)[0]


@dataclass(frozen=True, slots=True)
class OutdatedApplication:
    """An application with the oldest ``version`` of an SDK; ``newest`` is used in these projects too."""

    name: str
    sdk: str
    version: str
    newest: str


def list_outdated_applications(projects: Collection[str] | None) -> list[OutdatedApplication]:
    """Applications of these projects (None: of all) that use the oldest of several versions of an SDK.

    By name. Two SQL statements.
    """
    lines = ProjectApplication.objects.order_by()
    if projects is not None:
        lines = lines.filter(project_id__in=projects)
    used = set(chain.from_iterable(lines.values_list("sdks", flat=True).distinct()))
    oldest, newest = _find_range(group_sdks(used))
    old = sorted(sdk for sdk in used if (parts := split_sdk(sdk))[1] and oldest.get(parts[0]) == parts[1])
    if not old:
        return []
    rows = lines.filter(sdks__overlap=old).values_list("name", "sdks").distinct()
    outdated = {(name, split_sdk(sdk)) for name, sdks in rows for sdk in sdks if sdk in set(old)}
    return [OutdatedApplication(name, sdk, version, newest[sdk]) for name, (sdk, version) in sorted(outdated)]


def _find_range(sdks: Iterable[Document]) -> tuple[dict[str, str], dict[str, str]]:
    """The oldest and the newest version of each SDK that is used in several. Pre-releases do not count."""
    known = {sdk["name"]: [version for version in sdk["versions"] if is_release(version)] for sdk in sdks}
    several = {name: versions for name, versions in known.items() if len(versions) > 1}
    return {n: v[0] for n, v in several.items()}, {n: v[-1] for n, v in several.items()}


def _read_instances(project_id: str, applications: list[int]) -> dict[int, list[str]]:
    since = timezone.now() - settings.APPLICATION_INSTANCE_WINDOW
    limit = settings.APPLICATION_INSTANCES_LISTED
    return dict(fetch_rows(_INSTANCES, [since, limit, project_id, applications]))


def _refresh_lines(project_id: str, since: datetime) -> None:
    """Rebuilds rows that include instances last seen before ``since``."""
    stale = fetch_rows(_STALE, [project_id, since], prepared=True)
    _refresh([application_id for (application_id,) in stale])


def refresh_lines_ahead(ahead: timedelta) -> int:
    """Rebuilds rows that become outdated within ``ahead``, so that page views do not.

    Returns their number.
    """
    soon = timezone.now() - settings.APPLICATION_INSTANCE_WINDOW + ahead
    lines = ProjectApplication.objects.filter(oldest_seen_at__lt=soon)
    ids = sorted(set(lines.values_list("application_id", flat=True)))
    _refresh(ids)
    return len(ids)


def _refresh(ids: list[int]) -> None:
    for start in range(0, len(ids), REFRESHED_AT_ONCE):
        transactional(refresh_applications)(ids[start : start + REFRESHED_AT_ONCE])


MAX_TERMS = 100


def split_terms(query: str) -> list[str]:
    """The comma-separated search terms, without empty ones."""
    return [term.strip() for term in query.split(",") if term.strip()]


def check_terms(query: str) -> None:
    """Raises a form ValidationError for too many terms."""
    if len(split_terms(query)) > MAX_TERMS:
        raise forms.ValidationError(f"Must have at most {MAX_TERMS} terms.")


def search_in_project(lines: QuerySet, name: str, query: str) -> QuerySet:
    return search(lines, split_terms(query))


def search_by_name(applications: QuerySet, name: str, query: str) -> QuerySet:
    matches = Q()
    for term in split_terms(query):
        matches |= Q(folded_name__contains=term.casefold())
    return applications.filter(matches)


def query_filter(search: Callable[..., QuerySet], searched: str) -> django_filters.CharFilter:
    help_text = f"Search in {searched}, ignoring case. A comma means or."
    return django_filters.CharFilter(method=search, validators=[check_terms], help_text=help_text)


def make_length_field(default: int) -> WholeNumber:
    help_text = f"Number of applications per page, 1 to {MAX_LENGTH}."
    return WholeNumber(
        min_value=1, max_value=MAX_LENGTH, initial=default, is_strict=True, help_text=help_text
    )


def sort_key(sorts: str, keys: Iterable[str]) -> Text:
    return Text(initial="appName", help_text=f"{sorts} {', '.join(keys)}; anything else counts as appName.")


class ProjectApplicationOptions(forms.Form):
    sortOrder = Direction(is_strict=True, help_text="Sort order for `sortBy`.")
    offset = WholeNumber(min_value=0, initial=0, is_strict=True, help_text="Number of applications to skip.")
    limit = make_length_field(50)
    sortBy = sort_key("Field to sort by; lists are sorted by their length, ties by name:", SORT_KEYS)


class ApplicationOptions(ProjectApplicationOptions):
    limit = make_length_field(1000)
    sortBy = sort_key("Field to sort by:", ["appName"])


class ProjectApplicationFilter(ListFilter):
    once_only = True
    query = query_filter(search_in_project, "application name, SDK and environment")

    class Meta:
        form = ProjectApplicationOptions


class ApplicationFilter(ListFilter):
    once_only = True
    query = query_filter(search_by_name, "application names")

    class Meta:
        form = ApplicationOptions


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
