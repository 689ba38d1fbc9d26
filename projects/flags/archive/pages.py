"""Console pages that archive, revive and delete one flag or the flags selected in a list.

Before archiving, the page lists the applications that still use the flags. Deleting cannot be undone and
always needs confirmation.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any

from django.db.models import Count, F
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from flagadmin.core.errors import Conflict, choices
from flagadmin.core.lists.pages import curl_for
from groups.console import ConfirmPage
from projects.access import access_project, group_by_project
from projects.console import api_path, project_url
from projects.deletion.kept_names import FLAG, list_users
from projects.drafts import Draft, DraftingPage, FlagEdit, find_enabled_places
from projects.flags.archive.actions import (
    archive_flags_of_projects,
    check_no_children,
    delete_flags,
    read_names_and_plans,
    revive_flags,
)
from projects.flags.bulk.selected_flags_page import (
    ChangeSelectedFlags,
    SelectedFlags,
    count_flags,
    select_flags,
)
from projects.flags.insights.evaluations import FlagUser, find_last_evaluation, read_users
from projects.flags.lists.queries import make_project_scope
from projects.models import Dependency, Flag, FlagEnvironment
from projects.projects.required_comments import requires_comment
from projects.reverts.change_plan import UndoableAction, tell_done

MAX_LISTED = 20  # flags listed individually
RECENT = timedelta(days=7)  # a flag evaluated within this time is in use


@dataclass(frozen=True, slots=True)
class UsedFlag:
    """A flag that applications evaluate, with them and the environments, most recent first."""

    name: str
    users: Sequence[FlagUser]

    @property
    def last(self) -> FlagUser:
        return self.users[0]

    @property
    def others(self) -> int:
        """The number of applications besides the last one."""
        return len({user.application for user in self.users}) - 1

    @property
    def is_recent(self) -> bool:
        return timezone.now() - self.last.last_used_at < RECENT


def find_used_flags(flags: Iterable[Flag]) -> list[UsedFlag]:
    """The flags among these that applications evaluate, most recent first."""
    names = {flag.pk: flag.name for flag in flags}
    used = [UsedFlag(names[pk], users) for pk, users in read_users(names).items()]
    return sorted(used, key=lambda flag: flag.last.last_used_at, reverse=True)


def count_enabled(flags: Sequence[Flag]) -> list[tuple[str, int]]:
    """The environments of their projects in which some of the flags are on, with the number of those."""
    rows = FlagEnvironment.objects.filter(flag__in=flags, enabled=True)
    rows = rows.filter(environment__projects=F("flag__project")).order_by("environment")
    return list(rows.values_list("environment").annotate(Count("pk")))


class ArchivePage(DraftingPage, ChangeSelectedFlags):
    """Lists the applications that use the flags and the flags that depend on them.

    Archiving all flags of a project archives exactly the flags counted on the page.
    """

    template_name = "flags/archive.html"
    unchanged = "Nobody changes: off in every environment."
    shown_by = "get"

    def dependants(self, flags: Sequence[Flag]) -> list[Dependency]:
        dependencies = Dependency.objects.filter(parent__in=flags, flag__archived_at=None).exclude(
            flag__in=flags
        )
        return list(dependencies.order_by("parent__name", "flag__name").select_related("parent", "flag"))

    def may_archive(self, dependant: Flag) -> bool:
        """Whether the page can archive this flag too."""
        if self.project_id is not None:
            return dependant.project_id == self.project_id
        return self.caller.can(self.permission, project=dependant.project_id)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        flags = self.selected
        used, dependencies = find_used_flags(flags), self.dependants(flags)
        names = [row.flag.name for row in dependencies if self.may_archive(row.flag)]
        self.title = f"Archive {count_flags(self.names)}"
        return super().get_context_data(
            button=self.title,
            used=used[:MAX_LISTED],
            last_evaluation=None if used else find_last_evaluation([flag.pk for flag in flags]),
            enabled=count_enabled(flags),
            more_used=max(len(used) - MAX_LISTED, 0),
            children=dependencies[:MAX_LISTED],
            needed_by=len(dependencies),
            dependants=list(dict.fromkeys(names)),
            elsewhere=len(dependencies) > len(names),
            all=self.all,
            expected=hash_names(flags),
            listed=choices(self.names),
            comment_required=requires_comment({flag.project_id for flag in flags}),
            **kwargs,
        )

    def must_ask(self) -> bool:
        return "known" not in self.request.POST

    def get_edits(self) -> list[FlagEdit]:
        flags = self.flags(self.request.POST)
        if "dependants" in self.request.POST:
            flags += [row.flag for row in self.dependants(flags) if self.may_archive(row.flag)]
        check_no_children(flags, "archived")
        projects = {flag.name: flag.project_id for flag in flags}
        return [
            FlagEdit(projects[name], name, environment, Draft(name, archived=True))
            for name, environment in find_enabled_places(flags)
        ]

    def submit(self) -> str:
        flags = self.selected
        if self.all and self.request.POST.get("expected") != hash_names(flags):
            raise Conflict(
                "The flags of this project changed since you opened this page. Nothing was archived."
            )
        selected = list(flags)
        if "dependants" in self.request.POST:
            selected += [row.flag for row in self.dependants(flags) if self.may_archive(row.flag)]
        done = archive_flags_of_projects(group_by_project(selected), caller=self.caller)
        tell_done(self.request, f"Archived {count_flags([flag.name for flag in done])}.", caller=self.caller)
        return self.get_success_url()

    def get_curl(self) -> str:
        if self.project_id is None:
            return ""
        address = f"{api_path(self.project_id)}/archive"
        return curl_for(self.request, "POST", address, {"features": self.names})


def hash_names(flags: Iterable[Flag]) -> str:
    """A hash of the set of flag names, used to detect that the set has changed."""
    return sha256("\n".join(sorted(flag.name for flag in flags)).encode()).hexdigest()


class DeletePage(SelectedFlags, ConfirmPage):
    """Permanently deletes archived flags. The button of the list posts their names without ``known``."""

    archived = True
    template_name = "console/confirm.html"
    api_call = "POST /api/admin/projects/{project_id}/delete"

    def plan(self) -> dict[str, Any]:
        form = self.request.POST if self.request.method == "POST" else self.request.GET
        flags = Flag.objects.filter(pk__in=[flag.pk for flag in self.flags(form)])
        self.names, plans = read_names_and_plans(flags)
        self.title = f"Delete {count_flags(self.names)}"
        return {
            "removed_items": [
                *self.names,
                *(f"Release plan {plan}" for plan in plans),
                *(f"{user} no longer applies" for user in list_users(FLAG, self.names, self.caller)),
            ],
            "kept": f"{'Its' if len(self.names) == 1 else 'Their'} strategies, variants, tags, links and safeguards"
            " are deleted too."
            " The audit log is kept.",
            "hidden": [("name", name) for name in self.names],
            "cancel": f"{self.get_success_url()}?show=archived",
        }

    def act(self) -> tuple[str, str]:
        names = [flag.name for flag in self.flags(self.request.POST)]
        deleted = delete_flags(self.kwargs["project_id"], names, caller=self.caller)
        return f"Deleted {count_flags(deleted)}.", f"{self.get_success_url()}?show=archived"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if "known" in request.POST:
            return super().post(request, *args, **kwargs)
        self.flags(request.POST)  # some are selected
        return self.ask()

    def get_api_body(self) -> Any:
        return {"features": self.names}


class ReviveFlags(UndoableAction):
    def act(self) -> str:
        project = access_project(self.caller, self.kwargs["project_id"])
        scope = make_project_scope(project, archived=True)
        names = [flag.name for flag in select_flags(scope, self.request.POST, archived=True)]
        revived = revive_flags(project.pk, names, caller=self.caller)
        return f"Revived {count_flags([flag.name for flag in revived])}, switched off in every environment."

    def get_success_url(self) -> str:
        return project_url(self.kwargs["project_id"])
