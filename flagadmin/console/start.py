"""The start page, and the choice of a theme."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse, reverse_lazy
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.csrf import csrf_exempt

from flagadmin.console.attention import Attention, list_attention
from flagadmin.console.first_steps import find_first_steps
from flagadmin.console.inbox import read_inbox, read_running_plans
from flagadmin.console.navigation import THEMES
from flagadmin.core.audit.events import EventType
from groups.access import Caller
from groups.console import ActionPage, ConsolePage, not_allowed
from groups.permissions import Permission
from projects.console import flag_url, project_url
from projects.flags.insights.evaluations import read_installation_usage
from projects.flags.lists.cells import Cell, read_flag_cells
from projects.flags.lists.rows import Toggle
from projects.history.changes import change_page
from projects.history.queries import readable_events
from projects.models import FavoriteProject, Flag, Project
from projects.projects.queries import annotate_flag_counts

MAX_PROJECTS, MAX_CHANGES, MAX_FAVORITES, MAX_CHOICES = 10, 8, 8, 20
OPEN_ATTENTION = 5  # more of it unfolds
DISMISSED, MAX_DISMISSED = "dismissed", 100  # in the session
NO_CHANGES = [
    event.value
    for event in EventType
    if event.startswith(("user-log", "user-password", "pat-"))
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
    title = "Overview"
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
        events = readable_events(self.caller).exclude(type__in=NO_CHANGES)
        changes = change_page(events, caller=self.caller, size=MAX_CHANGES)
        return super().get_context_data(
            projects=projects,
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
            stale=count_stale(self.caller, projects),
            changes=changes.changes,
            favorites=list_favorites(self.caller),
            usage=read_installation_usage(self.caller),
            **read_inbox(self.caller),
            running=read_running_plans(self.caller),
            creatable=self.creatable(projects),
            start_here=not (steps or self.request.session.get("evaluated")),
            **{"title": "Welcome" if steps else self.title, **kwargs},
        )

    def creatable(self, projects: Sequence[Project]) -> list[tuple[str, str]]:
        """The name of each shown project in which the caller may create flags, and the URL for it."""
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
        """The page says it."""


def group_by_project(items: Sequence[Attention]) -> list[tuple[str, list[Attention]]]:
    """The items of each project, by its name, that of the most urgent one first; last what concerns several or none."""
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


def count_stale(caller: Caller, projects: Sequence[Project]) -> dict[str, int]:
    flags = Flag.objects.active().filter(project__in=projects, stale=True).order_by()
    return dict(flags.values_list("project_id").annotate(Count("pk")))


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


@csrf_exempt  # it only stores a color, and the form is also on pages without a session
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
