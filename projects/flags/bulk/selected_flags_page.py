"""The base of the console's pages about flags selected in a list."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict

from flagadmin.core.errors import NoAccess, NotFound, ValidationError
from groups.console import Breadcrumbs, ConsolePage, Permission, SubmitPage, read_next_page
from projects.access import access_project
from projects.console import FLAGS, get_project_breadcrumbs, project_url
from projects.flags.lists.queries import (
    MAX_MATCHING,
    FlagScope,
    filter_by_query,
    make_project_scope,
    make_readable_scope,
)
from projects.models import Flag

MAX_ADDRESS = 4000  # characters of the URL of a page for selected flags


class SelectedFlags(ConsolePage):
    """Base page for the flags given as ``?name=…&name=…``, for all flags with ``?all``, or for those of a list.

    ``matching`` is the query string of that list. The form posts the same parameters. The flags are those of the
    project in the URL or, without one, of all projects; flags that the caller may not change are then ``left_out``.
    """

    archived = False
    permission = Permission.DELETE_FEATURE
    left_out: Sequence[tuple[Sequence[str], str]] = ()

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Redirects back with an error message if no flag is selected."""
        try:
            return super().dispatch(request, *args, **kwargs)
        except NothingSelected as error:
            messages.error(request, error.message)
            return HttpResponseRedirect(self.get_success_url())

    @property
    def project_id(self) -> str | None:
        return self.kwargs.get("project_id")

    def flags(self, form: QueryDict) -> list[Flag]:
        """The selected flags by name. Raises NotFound, NoAccess, NothingSelected."""
        self.all = "all" in form and self.project_id is not None
        if self.project_id is None:
            return self.allowed(select_flags(make_readable_scope(self.caller), form))
        project = access_project(self.caller, self.project_id)
        self.check_permission(project.pk)
        scope = make_project_scope(project, archived=self.archived)
        return select_flags(scope, form, archived=self.archived)

    def allowed(self, flags: Sequence[Flag]) -> list[Flag]:
        """Selects the flags that the caller may change. Raises NothingSelected if there are none."""
        refused: dict[str, str] = {}
        for project_id in {flag.project_id for flag in flags}:
            try:
                self.check_permission(project_id)
            except (NoAccess, NotFound) as error:
                refused[project_id] = error.message
        self.left_out = [
            ([flag.name for flag in flags if flag.project_id == project_id], reason)
            for project_id, reason in sorted(refused.items())
        ]
        allowed = [flag for flag in flags if flag.project_id not in refused]
        if not allowed:
            raise NothingSelected(" ".join(dict.fromkeys(reason for _, reason in self.left_out)))
        return allowed

    def ask(self) -> HttpResponseBase:
        """Redirects to the page about the selected flags, so that reloading it submits nothing.

        Responds with the page itself if its URL would be too long.
        """
        query = self.request.GET.copy()
        query.update(self.request.POST)
        for name in ("csrfmiddlewaretoken", *(["name"] if "matching" in query else [])):
            query.pop(name, None)
        address = f"{self.request.path}?{query.urlencode()}"
        return HttpResponseRedirect(address) if len(address) <= MAX_ADDRESS else self.get(self.request)

    def check_permission(self, project_id: str) -> None:
        self.caller.check(self.permission, project=project_id)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(left_out=self.left_out, **kwargs)

    def get_breadcrumbs(self) -> Breadcrumbs:
        if self.project_id is None:
            return (FLAGS,)
        return get_project_breadcrumbs(access_project(self.caller, self.project_id))

    def get_success_url(self) -> str:
        return read_next_page(self.request) or list_url(self.project_id)


class ChangeSelectedFlags(SelectedFlags, SubmitPage):
    """Shows the effect of changing the ``selected`` flags, then changes them."""

    passes = ()

    def find(self) -> None:
        self.selected = self.flags(self.request.POST if self.request.method == "POST" else self.request.GET)
        self.names = [flag.name for flag in self.selected]

    def must_ask(self) -> bool:
        """Whether the page must be shown before the flags change."""
        raise NotImplementedError

    def ask_first(self) -> HttpResponseBase | None:
        return self.ask() if self.must_ask() else None

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(names=self.names, back=self.get_success_url(), **kwargs)


def list_url(project_id: str | None) -> str:
    """The list of a project's flags, or of all flags."""
    return str(FLAGS[1]) if project_id is None else project_url(project_id)


class NothingSelected(ValidationError):
    """The form names no flag that exists in the required state and that the caller may change."""


def select_flags(scope: FlagScope, form: QueryDict, *, archived: bool = False) -> list[Flag]:
    """The flags that a form selects, by name. Raises NothingSelected, and ValidationError for too many."""
    flags = scope.flags
    if "matching" in form:
        flags = filter_by_query(scope, QueryDict(str(form["matching"])))
        if flags.count() > MAX_MATCHING:
            raise ValidationError(f"Select at most {MAX_MATCHING} flags at once.")
    elif "all" not in form:
        flags = flags.filter(name__in=form.getlist("name"))
    if not flags:
        state, where = "archived" if archived else "active", "" if scope.projects else " of this project"
        raise NothingSelected(f"Select an {state} flag{where} first.")
    return list(flags)


def count_flags(names: Sequence[str]) -> str:
    """``flag dark-theme`` or ``3 flags``, as button text."""
    return f"flag {names[0]}" if len(names) == 1 else f"{len(names):,} flags"
