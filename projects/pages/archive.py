"""Archiving flags, reviving them, and deleting archived ones: one flag, or those ticked in the list.

What applications still ask for is said before it is archived; what cannot be undone is asked for on a page of its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import path

from flagadmin.errors import AppError, ValidationError
from flagadmin.pages import curl_for
from groups.pages.base import ConsolePage
from groups.permissions import Permission
from projects.access import access_project
from projects.actions.archiving import archive_flags, delete_flags, revive_flags
from projects.documents.flag_usage import FlagUser, users_of
from projects.models import Dependency, Flag
from projects.pages.base import ActionPage, api_path, project_crumbs, project_url


@dataclass(frozen=True, slots=True)
class Asked:
    """A flag that an application asked for; ``others`` more did so too."""

    name: str
    last: FlagUser
    others: int


def asked_flags(flags: Iterable[Flag]) -> list[Asked]:
    """Those that applications asked for, each with the one that did so last."""
    names = {flag.pk: flag.name for flag in flags}
    users = users_of(names)
    return [
        Asked(names[pk], found[0], len({user.application for user in found}) - 1)
        for pk, found in users.items()
    ]


def counted(names: Sequence[str]) -> str:
    """``flag dark-theme`` or ``3 flags``: what stands on the button."""
    return f"flag {names[0]}" if len(names) == 1 else f"{len(names)} flags"


class ChosenFlags(ConsolePage):
    """A page about the flags of ``?name=…&name=…``; its form sends the same names."""

    permission = Permission.DELETE_FEATURE
    archived = False

    def flags(self, names: Sequence[str]) -> list[Flag]:
        """Raises NotFound, NoAccess, ValidationError where none is named or none of them is there."""
        project = access_project(self.caller, self.kwargs["project_id"])
        self.caller.check(self.permission, project=project.pk)
        found = Flag.objects.filter(
            project=project, name__in=names, archived_at__isnull=not self.archived
        ).order_by("name")
        if not found:
            state = "archived" if self.archived else "active"
            raise ValidationError(f"Choose flags first: none of {len(names)} is an {state} flag here.")
        return list(found)

    def crumbs(self) -> Sequence[tuple[str, str]]:
        return project_crumbs(access_project(self.caller, self.kwargs["project_id"]))

    def back(self) -> str:
        return project_url(self.kwargs["project_id"])

    def shown(self, flags: Sequence[Flag], **more: Any) -> HttpResponseBase:
        self.names = [flag.name for flag in flags]
        self.title = f"{self.verb} {counted(self.names)}"
        return self.render_to_response(
            self.get_context_data(names=self.names, back=self.back(), button=self.title, **more)
        )

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return self.shown(self.flags(request.GET.getlist("name")))

    verb = ""


class ArchivePage(ChosenFlags):
    """GET and a first POST show who still asks; nobody does: they are archived at once."""

    template_name = "projects/archive.html"
    verb = "Archive"

    def shown(self, flags: Sequence[Flag], **more: Any) -> HttpResponseBase:
        held = Dependency.objects.filter(parent__in=flags, flag__archived_at=None).exclude(flag__in=flags)
        children = held.order_by("parent__name", "flag__name").select_related("parent", "flag")
        return super().shown(flags, asked=asked_flags(flags), children=list(children), **more)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        flags = self.flags(request.POST.getlist("name"))
        if "known" not in request.POST and asked_flags(flags):
            return self.shown(flags)
        try:
            done = archive_flags(self.kwargs["project_id"], [flag.name for flag in flags], caller=self.caller)
        except AppError as error:
            return self.shown(flags, refusal=error)
        messages.success(request, f"Archived {counted([flag.name for flag in done])}.")
        return HttpResponseRedirect(self.back())

    def curl(self) -> str:
        address = f"{api_path(self.kwargs['project_id'])}/archive"
        return curl_for(self.request, "POST", address, {"features": self.names})


class DeletePage(ChosenFlags):
    """Archived flags, for good."""

    template_name = "projects/delete_flags.html"
    archived = True
    verb = "Delete"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        flags = self.flags(request.POST.getlist("name"))
        if "known" not in request.POST:
            return self.shown(flags)
        try:
            names = delete_flags(self.kwargs["project_id"], [flag.name for flag in flags], caller=self.caller)
        except AppError as error:
            return self.shown(flags, refusal=error)
        messages.success(request, f"Deleted {counted(names)}.")
        return HttpResponseRedirect(f"{self.back()}?show=archived")

    def curl(self) -> str:
        address = f"{api_path(self.kwargs['project_id'])}/delete"
        return curl_for(self.request, "POST", address, {"features": self.names})


class ReviveFlags(ActionPage):
    def act(self) -> str:
        names = self.request.POST.getlist("name")
        revived = revive_flags(self.kwargs["project_id"], names, caller=self.caller)
        if not revived:
            raise ValidationError("Choose flags first: none of these is an archived flag here.")
        return f"Revived {counted([flag.name for flag in revived])}, switched off in every environment."

    def back(self) -> str:
        return project_url(self.kwargs["project_id"])


PROJECT = "projects/<str:project_id>/features"
urlpatterns = [
    path(f"{PROJECT}/archive", ArchivePage.as_view(), name="flags-archive"),
    path(f"{PROJECT}/delete", DeletePage.as_view(), name="flags-delete"),
    path(f"{PROJECT}/revive", ReviveFlags.as_view(), name="flags-revive"),
]
