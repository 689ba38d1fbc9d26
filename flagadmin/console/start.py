"""The start page, and the choice of a theme."""

from datetime import timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.csrf import csrf_exempt

from flagadmin.console.activity import with_sentences
from flagadmin.console.lists import curl_for
from flagadmin.console.navigation import THEMES
from groups.console import ConsolePage, not_allowed
from groups.permissions import Permission
from importer.pages.history import STATES, counts_text
from importer.runs import visible_runs
from projects.access import readable_projects
from projects.console import project_url
from projects.history.queries import readable_events
from projects.models import Project
from projects.projects.queries import counted_projects

SHOWN_PROJECTS, SHOWN_IMPORTS, SHOWN_EVENTS = 30, 5, 10


class StartPage(ConsolePage):
    template_name = "console/start.html"
    title = "Start"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        in_use = readable_projects(self.caller).filter(archived_at=None)
        projects = counted_projects(in_use).order_by("-active_flags", "id")
        events = readable_events(self.caller)
        shown = list(projects[:SHOWN_PROJECTS])
        runs = visible_runs(self.caller).order_by("-created_at")[:SHOWN_IMPORTS]
        return super().get_context_data(
            projects=shown,
            first_flag="" if any(project.active_flags for project in shown) else self.first_flag(shown),
            more_projects=max(0, projects.count() - SHOWN_PROJECTS),
            imports=[(run, counts_text(run), STATES[run.state]) for run in runs],
            activity=with_sentences(events.order_by("-id")[:SHOWN_EVENTS]),
            start_here=not self.request.session.get("evaluated"),
            **kwargs,
        )

    def first_flag(self, projects: list[Project]) -> str:
        """The URL for creating the first flag, "" if the caller may not create flags."""
        for project in projects:
            if self.caller.can(Permission.CREATE_FEATURE, project=project.pk):
                return project_url(project.pk, "flag-new")
        return ""

    def curl(self) -> str:
        return curl_for(self.request, "GET", "/api/admin/projects")


@csrf_exempt  # it only stores a colour, and the form is also on pages without a session
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
