"""Console pages that turn the selected flags on or off in an environment, tag them, and mark them as stale."""

from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.utils.functional import cached_property

from flagadmin.core.lists.pages import curl_for
from groups.permissions import Permission
from projects.access import find_project_environment, group_by_project
from projects.console import api_path, read_turned
from projects.drafts import DraftingPage, FlagEdit, draft_plan
from projects.flags.actions import change_tags_of_many, set_stale
from projects.flags.archive.pages import MAX_LISTED
from projects.flags.bulk.selected_flags_page import (
    ChangeSelectedFlags,
    SelectedFlags,
    count_flags,
)
from projects.flags.environments.actions import switch_flags
from projects.flags.insights.evaluations import read_users
from projects.flags.lists.cells import read_flag_cells, read_texts_when_on
from projects.models import Environment, Flag, FlagTag, TagType
from projects.projects.required_comments import requires_comment
from projects.reverts.change_plan import UndoableAction, tell_done
from projects.strategies.planned import PlannedFlag

DEFAULT_ADDED = "On with the default strategy, which is added"


class TogglePage(DraftingPage, ChangeSelectedFlags):
    """Shows the effect of turning the flags on or off for each of them, then does it."""

    template_name = "flags/toggle_many.html"
    shown_by = "get"

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        self.form = request.POST if "enabled" in request.POST else request.GET
        self.environment = request.POST.get("environment", request.GET.get("environment", ""))

    @cached_property
    def turned(self) -> str:
        return read_turned(self.form)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        read_turned(self.form)
        return super().post(request, *args, **kwargs)

    def check_permission(self, project_id: str) -> None:
        find_project_environment(project_id, self.environment)
        permission = Permission.UPDATE_FEATURE_ENVIRONMENT
        self.caller.check(permission, project=project_id, environment=self.environment)

    def must_ask(self) -> bool:
        return "confirmed" not in self.request.POST and bool(self.changes(self.selected))

    def get_edits(self) -> list[FlagEdit]:
        changing = [flag for flag, _, _ in self.changes(self.flags(self.request.POST))]
        turn, edits = partial(PlannedFlag.switch, enabled=self.turned == "on"), list[FlagEdit]()
        for project_id in sorted({flag.project_id for flag in changing}):
            flags = [flag for flag in changing if flag.project_id == project_id]
            edits += draft_plan(flags, self.environment, turn, caller=self.caller)
        return edits

    def submit(self) -> str:
        place = group_by_project(self.selected), self.environment
        done = switch_flags(*place, self.turned == "on", caller=self.caller)
        if changed := [flag.name for flag in done]:
            sentence = f"Turned {self.turned} {count_flags(changed)} in {self.environment}."
            tell_done(self.request, sentence, caller=self.caller)
        else:
            names = self.names
            flags_are = f"{names[0]} is" if len(names) == 1 else f"These {len(names):,} flags are"
            messages.info(self.request, f"{flags_are} already {self.turned} in {self.environment}.")
        return self.get_success_url()

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        changes = self.changes(self.selected)
        self.title = f"Turn {self.turned} {count_flags(self.names)} in {self.environment}"
        users = self.users([flag for flag, _, _ in changes])
        return super().get_context_data(
            changes=changes,
            unchanged=len(self.selected) - len(changes),
            users=users[:MAX_LISTED],
            more_users=max(len(users) - MAX_LISTED, 0),
            environment=self.environment,
            production=Environment.objects.production().filter(name=self.environment).exists(),
            turned=self.turned,
            comment_required=requires_comment(
                {flag.project_id for flag in self.selected}, [self.environment]
            ),
            button=f"Turn {self.turned} {count_flags([flag.name for flag, _, _ in changes])} in {self.environment}",
            **kwargs,
        )

    def changes(self, flags: Sequence[Flag]) -> list[tuple[Flag, str, str]]:
        """The flags that are not in that state yet, with their texts before and after."""
        cells = [
            (row.flag, cell)
            for row in read_flag_cells(flags)
            for cell in row.cells
            if cell.environment == self.environment
        ]
        changing = [(flag, cell) for flag, cell in cells if cell.enabled != (self.turned == "on")]
        if self.turned == "off":
            return [(flag, cell.text, "Off") for flag, cell in changing]
        texts = read_texts_when_on([flag.pk for flag, _ in changing], self.environment)
        return [(flag, "Off", texts[flag.pk] or DEFAULT_ADDED) for flag, _ in changing]

    def users(self, flags: Sequence[Flag]) -> list[tuple[str, Any]]:
        """The flags that applications evaluate in this environment, each with its most recent user."""
        names = {flag.pk: flag.name for flag in flags}
        evaluated = []
        for pk, users in read_users(names).items():
            in_environment = [user for user in users if user.environment == self.environment]
            if in_environment:
                evaluated.append((names[pk], in_environment[0]))
        return sorted(evaluated, key=lambda pair: pair[1].last_used_at, reverse=True)

    def get_curl(self) -> str:
        if self.project_id is None:
            return ""
        path = f"{api_path(self.project_id)}/bulk_features/environments"
        address = f"{path}/{quote(self.environment, '')}/{self.turned}"
        return curl_for(self.request, "POST", address, {"features": self.names})


class TagsPage(ChangeSelectedFlags):
    """Adds a tag to the flags, or removes one from them."""

    template_name = "flags/tag_many.html"
    permission = Permission.UPDATE_FEATURE

    def must_ask(self) -> bool:
        return self.request.POST.get("do") not in ("add", "remove")

    def submit(self) -> str:
        tag = (self.request.POST.get("type", ""), self.request.POST.get("value", "").strip())
        removes = self.request.POST["do"] == "remove"
        add, remove = ([], [tag]) if removes else ([tag], [])
        done = change_tags_of_many(group_by_project(self.selected), add, remove, caller=self.caller)
        verb, joint = ("Removed", "from") if removes else ("Added", "to")
        count = count_flags([flag.name for flag in done])
        tell_done(self.request, f"{verb} the tag {':'.join(tag)} {joint} {count}.", caller=self.caller)
        return self.get_success_url()

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        self.title = f"Tag {count_flags(self.names)}"
        present = FlagTag.objects.filter(flag__in=self.selected).order_by("tag_type", "value")
        return super().get_context_data(
            types=TagType.objects.values_list("name", flat=True),
            present=[
                ":".join(tag) for tag in present.values_list("tag_type_id", "value").distinct()[:MAX_LISTED]
            ],
            entered={name: self.request.POST.get(name, "") for name in ("type", "value")},
            **kwargs,
        )

    def get_curl(self) -> str:
        if self.project_id is None:
            return ""
        body = {
            "features": self.names,
            "tags": {"addedTags": [{"type": "simple", "value": "shop"}], "removedTags": []},
        }
        return curl_for(self.request, "PUT", f"{api_path(self.project_id)}/tags", body)


class Stale(SelectedFlags, UndoableAction):
    """Marks the flags as stale, or as not stale. Asks first if the caller may change only some of them."""

    http_method_names = ["post"]
    template_name = "flags/stale_many.html"
    permission = Permission.UPDATE_FEATURE

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        flags = self.flags(request.POST)
        self.stale = request.POST.get("stale") == "yes"
        if self.left_out and "known" not in request.POST:
            self.title = f"Mark {count_flags([flag.name for flag in flags])} as {self.marked}"
            names = [flag.name for flag in flags]
            return self.render_to_response(
                self.get_context_data(names=names, stale=self.stale, back=self.get_success_url())
            )
        self.selected = group_by_project(flags)
        return super().post(request, *args, **kwargs)

    @property
    def marked(self) -> str:
        return "stale" if self.stale else "not stale"

    def act(self) -> str:
        changed = set_stale(self.selected, self.stale, caller=self.caller)
        return f"Marked {count_flags([flag.name for flag in changed])} as {self.marked}." if changed else ""
