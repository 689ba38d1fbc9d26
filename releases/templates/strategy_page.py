"""…/milestones/ID/strategies/ID, and …/new: the strategies of a milestone of a release template."""

from dataclasses import replace
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.functional import cached_property

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.errors import NotFound
from flagadmin.core.lists.pages import curl_for
from flagadmin.core.unreadable_values import check_values
from groups.console import Breadcrumbs
from playground.engine.definitions import StrategyDefinition
from playground.engine.strategy_types import FLEXIBLE_ROLLOUT
from projects.history.queries import readable_events
from projects.strategies.editor import SharedStrategyEditor, describe_whole_strategy
from projects.strategies.rules import StrategyDefaults, make_strategy
from projects.strategies.sentences import Summary
from releases.models import Milestone
from releases.templates.actions import plan_strategies, set_strategy
from releases.templates.pages import TEMPLATES, UPDATE
from releases.templates.queries import find_template, without_defaults


class MilestoneStrategyPage(SharedStrategyEditor):
    permissions = UPDATE
    is_evaluated = False
    environment = ""

    def find(self) -> None:
        self.template = find_template(self.caller, self.kwargs["template_id"])
        self.project_id = self.template.project_id or ""
        self.milestone = self.find_milestone()
        self.home = reverse("release-template", args=[self.template.pk])
        self.key = self.kwargs.get("strategy_id", "")
        self.is_new = not self.key
        self.may_delete = bool(self.key) and not self.locked
        self.stored = self.get_stored_document()
        self.note_version()

    def find_milestone(self) -> Milestone:
        key = self.kwargs["milestone_id"]
        return get_or_404(self.template.milestones, f"{self.template.name} has no milestone {key}.", pk=key)

    @cached_property
    def kept(self) -> StrategyDefinition:
        """The strategy of the milestone, or a gradual rollout for everyone."""
        if not self.key:
            everybody = {"name": FLEXIBLE_ROLLOUT, "parameters": {"rollout": "100"}}
            return self.open(make_strategy(everybody, StrategyDefaults("", "")))
        for strategy in self.milestone.strategies:
            if strategy["id"] == self.key:
                return self.open(strategy)
        raise NotFound(f"{self.milestone.name} has no strategy {self.key}.")

    def open(self, strategy: Any) -> StrategyDefinition:
        opened: Any = without_defaults(strategy)
        return opened

    def get_stored_document(self) -> StrategyDefinition:
        """The initial strategy of the form, or an empty one of the newly chosen type."""
        name = self.request.POST.get("name") or self.kept["name"]
        if name == self.kept["name"]:
            return self.kept
        return make_strategy({"name": name}, StrategyDefaults("", ""))

    def get_events(self) -> QuerySet[AuditEvent]:
        events = readable_events(self.caller).filter(subject=self.template.name)
        return events.filter(type=EventType.RELEASE_PLAN_TEMPLATE_UPDATED)

    def get_current_document(self) -> Any:
        return next((each for each in self.find_milestone().strategies if each["id"] == self.key), None)

    def sentences_now(self) -> list[Summary | str]:
        return describe_whole_strategy(self.get_current_document())

    def check(self, document: StrategyDefinition) -> StrategyDefinition:
        project_id = self.project_id or None
        [planned], problems = plan_strategies([document], "", project_id=project_id, flag=None)
        check_values([replace(problem, path=problem.path.removeprefix("[0].")) for problem in problems])
        planned_strategy: Any = planned
        return planned_strategy

    def save(self, document: StrategyDefinition) -> str:
        set_strategy(self.milestone, self.key, document, expected=self.version.expected, caller=self.caller)
        return f"Saved a strategy of {self.milestone.name}."

    def remove(self) -> str:
        set_strategy(self.milestone, self.key, None, caller=self.caller)
        return f"Removed a strategy of {self.milestone.name}."

    def get_title(self) -> str:
        return f"{'New strategy' if self.is_new else 'Strategy'} of milestone {self.milestone.name}"

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (TEMPLATES, (self.template.name, self.home))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        data = super().get_context_data(
            lead=f"Part of release template {self.template.name}. Plans that were made from it stay as they are.",
            button="Add strategy" if self.is_new else "Save strategy",
            types=self.list_types(),
            delete_button="Remove strategy",
            deletion="Plans that were made from the template keep it.",
            **kwargs,
        )
        for parameter in data["inputs"].parameters:
            if parameter.kind == "stickiness" and "" not in parameter.options:
                parameter.options.insert(0, "")
        return data

    def get_curl(self) -> str:
        place = (
            f"/projects/{self.project_id}/release-templates" if self.project_id else "/release-plan-templates"
        )
        path = f"/api/admin{place}/{self.template.pk}/milestones/{self.milestone.pk}/strategies"
        method = "PUT" if self.key else "POST"
        return curl_for(self.request, method, f"{path}/{self.key}".rstrip("/"), self.get_api_body())
