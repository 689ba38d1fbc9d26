"""The pages that add and edit a strategy of a flag: …/strategies/new and …/strategies/edit."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase

from flagadmin.audit.models import AuditEvent
from flagadmin.console.edit_conflicts import EditConflictMixin
from flagadmin.console.lists import curl_for
from flagadmin.errors import AppError
from groups.console import Crumbs
from groups.permissions import Permission
from projects.access import access_flag
from projects.console import api_path, flag_crumbs, flag_url
from projects.flags.queries import strategy_documents
from projects.flags.toggle import project_environment
from projects.history.queries import readable_events
from projects.models import FlagEnvironment, Strategy
from projects.sentences import Summary
from projects.strategies.actions import (
    access_strategy,
    add_strategy,
    checked_strategy,
    remove_strategy,
    update_strategy,
    versioned,
)
from projects.strategies.editor import Document, StrategyEditor, strategy_sentences, type_choices
from projects.strategies.rules import StrategyDefaults, default_strategy_document, strategy_document


class StrategyPage(StrategyEditor):
    """Base class of both pages."""

    def find(self) -> None:
        """Loads the flag, environment and stored strategy that the URL names. Raises NotFound."""
        self.flag = access_flag(self.caller, self.kwargs["project_id"], self.kwargs["name"], archived=False)
        self.project_id = self.flag.project_id
        self.environment = self.request.GET.get("environmentId", "")
        self.home = flag_url(self.project_id, self.flag.name)
        self.place = (self.project_id, self.flag.name, self.environment)
        project_environment(self.project_id, self.environment)
        self.stored = self.stored_document()

    def stored_document(self) -> Document:
        raise NotImplementedError

    def check(self, document: Document) -> None:
        checked_strategy(self.flag, document)

    def crumbs(self) -> Crumbs:
        return flag_crumbs(self.flag)

    def api_address(self) -> str:
        return f"{api_path(self.project_id, self.flag.name)}/environments/{self.environment}/strategies"


class EditStrategyPage(EditConflictMixin, StrategyPage):
    def find(self) -> None:
        super().find()
        self.note_version()

    def events(self) -> QuerySet[AuditEvent]:
        events = readable_events(self.caller)
        return events.filter(project=self.project_id, feature=self.flag.name, environment=self.environment)

    def current_document(self) -> Document:
        return versioned(self.stored)

    def sentences_now(self) -> list[Summary | str]:
        return strategy_sentences(self.stored_document())

    def stored_document(self) -> Document:
        self.strategy = access_strategy(self.flag, self.environment, self.request.GET.get("strategyId", ""))
        here = {"project": self.project_id, "environment": self.environment}
        self.may_delete = self.caller.can(Permission.DELETE_FEATURE_STRATEGY, **here)
        [document] = strategy_documents([self.strategy])
        return document

    def save(self, document: Document) -> str:
        strategy, expected = str(self.strategy.pk), self.version.expected
        update_strategy(*self.place, strategy, document, expected=expected, caller=self.caller)
        return f"Changed a strategy of {self.flag.name} in {self.environment}."

    def refused(self, error: AppError) -> None:
        super().refused(error)
        self.show_conflict(error)

    def remove(self) -> str:
        was_on = self.switched_on()
        remove_strategy(*self.place, str(self.strategy.pk), caller=self.caller)
        text = f"Deleted a strategy of {self.flag.name} in {self.environment}."
        if was_on and not self.switched_on():
            text += f" It was the last active strategy, so {self.flag.name} is now off there."
        return text

    def switched_on(self) -> bool:
        there = FlagEnvironment.objects.filter(flag=self.flag, environment=self.environment)
        return there.filter(enabled=True).exists()

    def get_title(self) -> str:
        return f"Strategy of {self.flag.name} in {self.environment}"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            button="Save strategy",
            delete_button="Delete strategy",
            deletion=self.what_goes() if self.may_delete else "",
            **kwargs,
        )

    def what_goes(self) -> str:
        """Describes what deleting the strategy does to the flag in the environment."""
        others = Strategy.objects.filter(flag=self.flag, environment=self.environment, disabled=False)
        if self.strategy.disabled or others.exclude(pk=self.strategy.pk).exists():
            return f"The remaining strategies apply to {self.flag.name} in {self.environment}."
        if self.switched_on():
            return f"It is the last active strategy: {self.flag.name} will be off in {self.environment}."
        return f"{self.flag.name} has no other in use in {self.environment}; it is off there."

    def curl(self) -> str:
        body = {key: value for key, value in self.stored.items() if key not in ("id", "sortOrder")}
        return curl_for(self.request, "PUT", f"{self.api_address()}/{self.strategy.pk}", body)


class NewStrategyPage(StrategyPage):
    permissions = (Permission.CREATE_FEATURE_STRATEGY,)

    def stored_document(self) -> Document:
        """The default strategy of the project environment, or an empty strategy of the chosen type."""
        defaults = StrategyDefaults(flag=self.flag.name, stickiness=self.flag.project.default_stickiness)
        place = project_environment(self.project_id, self.environment)
        name = self.request.POST.get("name") or self.request.GET.get("name")
        default = default_strategy_document(place.default_strategy, defaults)
        if name and name != default["name"]:
            return strategy_document({"name": name}, defaults)
        return default

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.find()
        self.caller.check_any(self.permissions, project=self.project_id, environment=self.environment)
        return super().get(request, *args, **kwargs)

    def save(self, document: Document) -> str:
        add_strategy(*self.place, document, caller=self.caller)
        return f"Added a strategy to {self.flag.name} in {self.environment}."

    def get_title(self) -> str:
        return f"New strategy of {self.flag.name} in {self.environment}"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(button="Add strategy", types=type_choices(), **kwargs)

    def curl(self) -> str:
        body = {key: self.stored[key] for key in ("name", "parameters", "constraints", "segments")}
        return curl_for(self.request, "POST", self.api_address(), body)
