"""What the pages about projects and flags share: addresses, what one may do, and forms of a single button."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect

from flagadmin.errors import AppError, NoAccess, NotFound
from groups.access import Caller
from groups.pages.base import ConsolePage
from groups.permissions import Permission

FLAG_TYPES = ("release", "experiment", "operational", "kill-switch", "permission")


def project_url(project_id: str) -> str:
    return f"/projects/{quote(project_id, '')}/"


def flag_url(project_id: str, name: str) -> str:
    return f"{project_url(project_id)}features/{quote(name, '')}/"


def application_url(name: str) -> str:
    return f"/applications/{quote(name, '')}/"


def api_path(project_id: str, name: str = "") -> str:
    """Of a project, or of one of its flags, in the admin API."""
    path = f"/api/admin/projects/{quote(project_id, '')}"
    return f"{path}/features/{quote(name, '')}" if name else path


def allowed(caller: Caller, project_id: str, **wanted: Permission) -> Mapping[str, bool]:
    """What a template asks before it offers something: ``{% if may.archive %}``."""
    return {name: caller.can(permission, project=project_id) for name, permission in wanted.items()}


class ActionPage(ConsolePage):
    """A form of one button. What the action says appears on the page that one came from.

    A field ``next`` of the form names that page; it must be one of this installation.
    """

    http_method_names = ["post"]

    def act(self) -> str:
        """Calls the action; answers what has been done, as a sentence."""
        raise NotImplementedError

    def back(self) -> str:
        """Where to go where the form names no page."""
        raise NotImplementedError

    def address(self) -> str:
        wanted = self.request.POST.get("next", "")
        fits = wanted.startswith("/") and url_has_allowed_host_and_scheme(wanted, allowed_hosts=None)
        return wanted if fits else self.back()

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        by_script = "HX-Request" in request.headers
        try:
            done = self.act()
        except AppError as error:
            if isinstance(error, NoAccess | NotFound) and not by_script:
                raise
            messages.error(request, error.message)
            go = HttpResponseClientRedirect if by_script else HttpResponseRedirect
            return go(self.address())
        if not by_script:  # it replaces the part that shows what was changed
            messages.success(request, done)
        return HttpResponseRedirect(self.address())
