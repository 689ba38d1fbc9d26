"""The start page: first steps of an empty installation, inbox, favorites; and the choice of a theme.

/settings/: everything that is set for the whole installation, in groups.

The style guide: every component of the console with its HTML. Available only with DEBUG.
"""

from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.csrf import csrf_exempt

from flagadmin.console.attention import Attention, list_attention
from flagadmin.console.navigation import THEMES, Group, find_place, list_pages
from flagadmin.core.audit.events import EventType
from flagadmin.core.document import Document
from flagadmin.core.errors import ValidationError
from flagadmin.core.templatetags.icons import ICONS
from groups.console import ActionPage, Caller, ConsolePage, Permission, not_allowed
from playground.pages.changes import format_share
from projects.applications.documents import find_readable_applications
from projects.applications.sdk_versions import format_sdk
from projects.console import flag_url, project_url
from projects.flags.lists.cells import Cell, Toggle, read_flag_cells
from projects.history.changes import change_page
from projects.history.queries import readable_events
from projects.models import ApplicationInstance, Environment, FavoriteProject, Flag, FlagEnvironment, Project
from projects.projects.queries import annotate_flag_counts
from releases.models import ChangeRequest
from releases.plans.queries import running_plans
from releases.plans.view import PlanView
from releases.requests.conflicts import find_conflicts, name_request
from releases.requests.impact import measure_impact
from releases.requests.lapses import find_lapses
from releases.requests.queries import read_drafts, scheduled_next, visible_requests, waiting_for

MAX_PROJECTS, MAX_CHANGES, MAX_FAVORITES = 10, 2, 8
OPEN_ATTENTION = 5  # items shown before the list unfolds
DISMISSED, MAX_DISMISSED = "dismissed", 100  # in the session
NO_CHANGES = [
    event.value
    for event in EventType
    if event == EventType.API_TOKEN_EXPIRING  # it needs attention, or is done with
    or event.startswith(("user-log", "user-password", "pat-"))
    or event.endswith(("-favorited", "-unfavorited"))
]


@dataclass(frozen=True, slots=True)
class Favorite:
    """A favorite flag with its cells and toggles in production environments."""

    flag: Flag
    url: str
    cells: Sequence[tuple[Cell, Toggle]]


class StartPage(ConsolePage):
    template_name = "console/start.html"
    title = "Home"
    api_call = "GET /api/admin/projects"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        in_use = Project.objects.active().readable_by(self.caller)
        number = in_use.count()
        projects = find_top_projects(self.caller)
        active = Flag.objects.active().readable_by(self.caller).filter(project__archived_at=None)
        steps = find_first_steps(self.caller, active) if number else None
        needed = list_attention(self.caller)
        hidden = set(self.request.session.get(DISMISSED, ()))
        attention = [item for item in needed if item.key not in hidden]
        inbox = read_inbox(self.caller)
        waits = attention or inbox["waiting"]
        events = readable_events(self.caller).exclude(type__in=NO_CHANGES)
        changes = change_page(events, caller=self.caller, size=MAX_CHANGES)
        return super().get_context_data(
            project_count=number,
            flag_count=active.count(),
            steps=steps,
            may_move=self.caller.can(Permission.ADMIN),
            connect_url=project_url(projects[0].pk, "connect")
            if number == 1
            else reverse("connect-anywhere"),
            attention=group_by_project(attention[:OPEN_ATTENTION]),
            more_attention=group_by_project(attention[OPEN_ATTENTION:]),
            attention_count=len(attention),
            attention_folded=max(0, len(attention) - OPEN_ATTENTION),
            dismissed=[item for item in needed if item.key in hidden],
            changes=changes.changes,
            favorites=list_favorites(self.caller),
            **inbox,
            running=read_running_plans(self.caller),
            creatable=self.creatable(projects),
            start_here=not (steps or waits or self.request.session.get("evaluated")),
            **{"title": "Welcome" if steps else self.title, **kwargs},
        )

    def creatable(self, projects: Sequence[Project]) -> list[tuple[str, str]]:
        """The shown projects in which the caller may create flags: names and URLs."""
        return [
            (project.name, project_url(project.pk, "flag-new"))
            for project in projects
            if self.caller.can(Permission.CREATE_FEATURE, project=project.pk)
        ]


class Dismiss(ActionPage):
    """Hides an item that needs attention in this session until it changes, or shows it again."""

    success_url = reverse_lazy("start")

    def act(self) -> str:
        key, hidden = self.request.POST.get("key", "")[:16], self.request.session.get(DISMISSED, [])
        others = [other for other in hidden if other != key]
        again = self.request.POST.get("do") == "show"
        self.request.session[DISMISSED] = others if again else [*others, key][-MAX_DISMISSED:]
        return ""

    def tell(self, done: str) -> None:
        """Adds no message: the page shows the result."""


def group_by_project(items: Sequence[Attention]) -> list[tuple[str, list[Attention]]]:
    """The items by project name, starting with the most urgent; items of several projects or none come last."""
    names = dict(Project.objects.filter(pk__in={item.project for item in items}).values_list("pk", "name"))
    groups: dict[str, list[Attention]] = {}
    for item in items:
        groups.setdefault(names.get(item.project, ""), []).append(item)
    return sorted(groups.items(), key=lambda group: not group[0])


def find_top_projects(caller: Caller) -> list[Any]:
    """The caller's favorites, then those with the most active flags."""
    favorite_ids = FavoriteProject.objects.filter(user=caller.id).values("project")
    in_use = annotate_flag_counts(Project.objects.active().readable_by(caller))
    return list(
        in_use.alias(liked=Q(pk__in=favorite_ids)).order_by("-liked", "-active_flags", "id")[:MAX_PROJECTS]
    )


def list_favorites(caller: Caller) -> list[Favorite]:
    flags = Flag.objects.active().readable_by(caller).filter(favorites__user=caller.id)
    flags_listed = list(flags.select_related("project").order_by("name")[:MAX_FAVORITES])
    return [
        Favorite(
            cells.flag,
            flag_url(cells.flag.project_id, cells.flag.name),
            [(cell, toggle(cells.flag, cell, caller)) for cell in cells.cells if cell.production],
        )
        for cells in read_flag_cells(flags_listed)
    ]


def toggle(flag: Flag, cell: Cell, caller: Caller) -> Toggle:
    may_toggle = caller.can(
        Permission.UPDATE_FEATURE_ENVIRONMENT, project=flag.project_id, environment=cell.environment
    )
    return Toggle(cell.environment, cell.enabled, not may_toggle, asks=True)


@csrf_exempt  # stores only a color, and the form is also on pages without a session
def keep_theme(request: HttpRequest) -> HttpResponse:
    """Stores the theme in a cookie and redirects to the previous page. Raises MethodNotAllowed."""
    if request.method != "POST":
        raise not_allowed(["POST"])
    back = request.POST.get("next", "/")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts=None):
        back = "/"
    response = HttpResponseRedirect(back)
    theme = request.POST.get("theme")
    if theme in THEMES:
        response.set_cookie("theme", theme, max_age=timedelta(days=365), samesite="Lax")
    elif theme == "system":
        response.delete_cookie("theme", samesite="Lax")
    return response


MAX_WAITING, MAX_DRAFTS, MAX_SCHEDULED, MAX_RUNNING = 5, 5, 5, 5


class Waiting(NamedTuple):
    """A request with the contents of its row. ``share``: the users who change, "" if unknown. ``conflicts``: the number
    of changes that no longer fit. Both are of now if someone waits for a decision; else ``share`` is the last one.
    """

    request: ChangeRequest
    url: str
    title: str
    change_count: int
    share: str
    approvals: int
    conflicts: int = 0


def read_inbox(caller: Caller) -> dict[str, Any]:
    """Reads the start page's data.

    About ten queries, one or two for each environment with requests in review, and 20 for each request shown as waiting
    for the caller.
    """
    waiting = waiting_for(caller, visible_requests(caller))
    drafts = read_drafts(caller)
    return {
        "waiting": [
            _compare_with_now(row)
            for row in _make_rows(waiting.select_related("project", "author")[:MAX_WAITING])
        ],
        "waiting_count": waiting.count(),
        "drafts": _make_rows(drafts.select_related("project", "author")[:MAX_DRAFTS]),
        "scheduled": _make_rows(
            scheduled_next(caller).select_related("project", "author", "schedule")[:MAX_SCHEDULED]
        ),
    }


def read_running_plans(caller: Caller) -> list[PlanView]:
    """Reads the plans, paused ones first, then those with the earliest next step. Two queries."""
    plans = running_plans(caller).select_related("flag__project", "active").prefetch_related("milestones")
    return [PlanView(plan, caller) for plan in plans.order_by("state", "look_at", "pk")[:MAX_RUNNING]]


def _make_rows(requests: Iterable[ChangeRequest]) -> list[Waiting]:
    requests = list(requests)
    lapses = find_lapses(requests)
    return [_make_row(request, lapses) for request in requests]


def _make_row(request: ChangeRequest, lapses: Container[int]) -> Waiting:
    changes, impact = list(request.changes.all()), request.impact
    return Waiting(
        request,
        reverse("change-request", args=[request.project_id, request.pk]),
        name_request(request),
        len(changes),
        _format_impact(impact),
        sum(review.approved and review.pk not in lapses for review in request.reviews.all()),
    )


def _compare_with_now(row: Waiting) -> Waiting:
    """Compares a request with the present, as its own page does. About 20 queries.

    Measures users, up to a second, only if no process has seen the same states and nobody has reviewed them.
    """
    request, changes = row.request, list(row.request.changes.all())
    share = ""
    with suppress(ValidationError):
        share = _format_impact(measure_impact(request, now=timezone.now()).document)
    return row._replace(share=share, conflicts=sum(map(bool, find_conflicts(request, changes))))


def _format_impact(impact: Document | None) -> str:
    return format_share(impact["changed"], impact["users"]) if impact else ""


FEW_FLAGS = 5  # an installation with more flags needs no first steps


@dataclass(frozen=True, slots=True)
class FirstSteps:
    """``instance``: the SDK seen last, with its application."""

    instance: ApplicationInstance | None
    flag: Flag | None
    is_rolled_out: bool

    @property
    def done(self) -> Sequence[bool]:
        return (self.instance is not None, self.flag is not None, self.is_rolled_out)

    @property
    def current(self) -> int:
        """The number of the first open step; 4 if all are done."""
        return next((number for number, is_done in enumerate(self.done, start=1) if not is_done), 4)

    @property
    def number_done(self) -> int:
        return sum(self.done)

    @property
    def sdk(self) -> str:
        return format_sdk(self.instance.sdk_version) if self.instance else ""


def find_first_steps(caller: Caller, flags: QuerySet[Flag]) -> FirstSteps | None:
    """Finds the first steps that are done with these flags; None if there is nothing left to show. At most four
    queries.
    """
    if len(listed := list(flags.order_by("created_at")[:FEW_FLAGS])) == FEW_FLAGS:
        return None
    applications = find_readable_applications(caller).values("pk")
    instances = ApplicationInstance.objects.filter(application_id__in=applications)
    production = Environment.objects.filter(type=Environment.PRODUCTION).values("name")
    in_production = FlagEnvironment.objects.filter(flag__in=listed, environment__in=production, enabled=True)
    steps = FirstSteps(
        instances.select_related("application").order_by("-seen_at").first(),
        listed[0] if listed else None,
        in_production.exists(),
    )
    return steps if steps.current <= 3 else None


class SettingsOverview(ConsolePage):
    template_name = "console/settings.html"
    title = "Settings"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        section, _, _ = find_place(self.request.path)
        groups: tuple[Group, ...] = section.groups if section else ()
        listed = [(group.label, list_pages(group, self.caller)) for group in groups]
        return super().get_context_data(groups=[group for group in listed if group[1]], **kwargs)


class StyleGuidePage(ConsolePage):
    template_name = "styleguide/styleguide.html"
    title = "Style guide"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            tabs=[("Flags", "?", 22_000, True), ("Access", "?", 6, False), ("Settings", "?", None, False)],
            segments=[("Active", "?", 9, True), ("Stale", "?", 2, False), ("Archived", "?", 1, False)],
            icons=sorted(ICONS),
            moment=timezone.now() - timedelta(minutes=3),
            **kwargs,
        )
