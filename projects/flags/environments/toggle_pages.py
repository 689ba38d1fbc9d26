"""Turns a flag on or off from the console, with a confirmation for production environments."""

from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.functional import cached_property

from groups.permissions import Permission
from projects.access import access_flag
from projects.console import OnFlagPage, flag_url
from projects.drafting import DraftingPage
from projects.drafts import FlagEdit, draft_plan
from projects.flags.environments.actions import disable_flag, enable_flag
from projects.flags.environments.toggle import find_project_environment, read_turned
from projects.flags.insights.evaluations import find_last_evaluation
from projects.flags.insights.usage import FlagUser, read_users
from projects.flags.queries import read_strategy_documents
from projects.models import Dependency, Environment, Segment, Strategy
from projects.projects.queries import needs_request
from projects.projects.required_comments import requires_comment
from projects.reverts.offers import UndoableAction
from projects.strategies.planned import PlannedFlag, make_added_strategy
from projects.strategies.sentences import Summary, summarize_strategy

MAX_USERS = 5
MAX_SUMMARIES = 10  # strategies listed individually


class ToggleFlag(OnFlagPage, DraftingPage, UndoableAction):
    """Turns a flag on or off in one environment: directly, or in production after a confirmation.

    The confirmation is a row of the list, a dialog, or a page without JavaScript.
    """

    title = "Turn {page.turned} {name} in {page.environment}"
    http_method_names = ["get", "post"]
    shown_by = "get"
    api_call = (
        "POST /api/admin/projects/{project_id}/features/{name}/environments/{page.environment}/{page.turned}"
    )

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        form = request.POST if request.method == "POST" else request.GET
        self.environment = form.get("environment", request.GET.get("environment", ""))
        self.form = form

    @cached_property
    def turned(self) -> str:
        return read_turned(self.form)

    def get_template_names(self) -> list[str]:
        if "HX-Request" not in self.request.headers:
            return ["flags/toggle_confirm.html"]
        return ["flags/toggle_row.html" if "row" in self.request.GET else "flags/toggle_dialog.html"]

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        read_turned(self.form)
        if "confirmed" not in request.POST and self.asks_first():
            return HttpResponseRedirect(self.question())
        return super().post(request, *args, **kwargs)

    def question(self) -> str:
        """The URL of the confirmation page, which users can leave and return to, unlike an answer to a form."""
        query = {"environment": self.environment, "enabled": self.turned, "next": self.get_redirect_url()}
        if "row" in self.request.GET:  # of a list, below which it is shown
            query["row"] = "yes"
        return f"{self.request.path}?{urlencode(query)}"

    def asks_first(self) -> bool:
        """Whether to ask first: in production, and in places that need a change request."""
        production = Environment.objects.production().filter(name=self.environment)
        return production.exists() or needs_request(self.kwargs["project_id"], [self.environment])

    def act(self) -> str:
        project_id, name = self.kwargs["project_id"], self.kwargs["name"]
        switch = enable_flag if self.turned == "on" else disable_flag
        self.changed = switch(project_id, name, self.environment, caller=self.caller)
        if not self.changed:
            return f"{name} is already {self.turned} in {self.environment}."
        return f"Turned {self.turned} {name} in {self.environment}."

    def tell(self, done: str) -> None:
        """Reports the result, with an Undo button unless another user was first, whose change it would undo."""
        if self.changed:
            super().tell(done)
        else:
            messages.info(self.request, done)

    def get_success_url(self) -> str:
        return flag_url(*self.place)

    def find(self) -> None:
        """Raises NotFound, NoAccess."""
        self.flag = access_flag(self.caller, *self.place, archived=False)
        project_id = self.flag.project_id
        self.project_environment = find_project_environment(project_id, self.environment)
        permission = Permission.UPDATE_FEATURE_ENVIRONMENT
        self.caller.check(permission, project=project_id, environment=self.environment)

    def get_edits(self) -> list[FlagEdit]:
        self.find()
        turn = partial(PlannedFlag.switch, enabled=self.turned == "on")
        return list(draft_plan([self.flag], self.environment, turn, caller=self.caller))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The context of the confirmation page."""
        summaries = self.summaries()
        users = [user for user in read_users([self.flag.pk]).get(self.flag.pk, []) if self.uses(user)]
        return super().get_context_data(
            flag=self.flag,
            environment=self.environment,
            turned=self.turned,
            summaries=summaries[:MAX_SUMMARIES],
            more_summaries=max(len(summaries) - MAX_SUMMARIES, 0),
            users=users[:MAX_USERS],
            more_users=max(len(users) - MAX_USERS, 0),
            last_evaluation=None if users else find_last_evaluation([self.flag.pk], self.environment),
            children=self.children(),
            comment_required=requires_comment([self.flag.project_id], [self.environment]),
            back=self.get_redirect_url(),
            **kwargs,
        )

    def uses(self, user: FlagUser) -> bool:
        return user.environment == self.environment

    def summaries(self) -> list[Summary]:
        """Describes the enabled strategies or, without any, the one added by turning the flag on."""
        rows = Strategy.objects.filter(flag=self.flag, environment=self.environment, disabled=False)
        documents = read_strategy_documents(list(rows.order_by("sort_order", "created_at", "pk")))
        if not documents and self.turned == "on":
            documents = [make_added_strategy(self.flag, self.project_environment)]
        ids = {segment for document in documents for segment in document["segments"]}
        names = Segment.objects.names(ids)
        return [summarize_strategy(document, segments=names) for document in documents]

    def children(self) -> list[str]:
        dependencies = Dependency.objects.filter(parent=self.flag, flag__archived_at=None)
        return list(dependencies.order_by("flag__name").values_list("flag__name", flat=True))
