"""/projects/ID/environments/NAME/strategy: edits the default strategy of a project's environment.

A flag that is turned on there without a strategy gets a copy of it.
"""

from typing import Any

from django.db.models import QuerySet

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from groups.console import Breadcrumbs
from playground.engine.definitions import FlagDefinition, StrategyDefinition
from playground.engine.strategy_types import FLEXIBLE_ROLLOUT
from projects.access import access_project
from projects.console import get_project_breadcrumbs, project_url
from projects.drafts import NewFlagEdit
from projects.flags.environments.toggle import find_project_environment
from projects.history.queries import readable_events
from projects.projects.environments import (
    DEFAULT_STRATEGY_PERMISSIONS,
    set_default_strategy,
    validate_default_strategy,
)
from projects.strategies.editor import SharedStrategyEditor, describe_whole_strategy
from projects.strategies.rules import (
    StrategyDefaults,
    make_default_strategy,
    make_strategy,
)
from projects.strategies.sentences import Summary


class DefaultStrategyPage(SharedStrategyEditor):
    permissions = DEFAULT_STRATEGY_PERMISSIONS
    api_call = "POST /api/admin/projects/{project_id}/environments/{environment}/default-strategy"

    def find(self) -> None:
        self.project = access_project(self.caller, self.kwargs["project_id"])
        self.project_id, self.environment = self.project.pk, self.kwargs["environment"]
        self.home = project_url(self.project_id, "project-settings")
        self.configured = find_project_environment(self.project_id, self.environment).default_strategy
        self.may_delete = self.configured is not None and not self.locked
        self.stored = self.get_stored_document()
        self.note_version()

    def get_events(self) -> QuerySet[AuditEvent]:
        events = readable_events(self.caller).filter(project=self.project_id, environment=self.environment)
        return events.filter(type=EventType.DEFAULT_STRATEGY_UPDATED)

    def get_current_document(self) -> StrategyDefinition | None:
        return self.configured

    def sentences_now(self) -> list[Summary | str]:
        self.configured = find_project_environment(self.project_id, self.environment).default_strategy
        return describe_whole_strategy(make_default_strategy(self.configured, self.defaults))

    @property
    def locked(self) -> bool:
        return self.project.archived_at is not None or super().locked

    def why_locked(self) -> str:
        archived = self.project.archived_at is not None
        return "This project is archived and read-only." if archived else super().why_locked()

    @property
    def kept(self) -> StrategyDefinition:
        """The configured strategy, or one that is on for everyone."""
        return make_strategy(self.configured or {"name": FLEXIBLE_ROLLOUT}, self.defaults)

    @property
    def defaults(self) -> StrategyDefaults:
        return StrategyDefaults(flag="", stickiness=self.project.default_stickiness)

    def get_stored_document(self) -> StrategyDefinition:
        """The configured strategy, or an empty one of the type just chosen."""
        name = self.request.POST.get("name") or self.kept["name"]
        return self.kept if name == self.kept["name"] else make_strategy({"name": name}, self.defaults)

    def check(self, document: StrategyDefinition) -> StrategyDefinition:
        return validate_default_strategy(self.project, document)

    def needs_confirmation(self, document: StrategyDefinition) -> bool:
        return False  # it changes no flag

    def get_edits(self) -> list[NewFlagEdit]:
        self.find()
        after = make_default_strategy(None, self.defaults) if self.is_deleting else self.entered()
        flags = self.new_flag(self.configured_or_built_in), self.new_flag(after)
        return [NewFlagEdit(self.project_id, self.environment, *flags)]

    @property
    def configured_or_built_in(self) -> StrategyDefinition:
        return make_default_strategy(self.configured, self.defaults)

    def new_flag(self, strategy: StrategyDefinition) -> FlagDefinition:
        """The document of a flag that has just been turned on."""
        defaults = StrategyDefaults("new-flag", self.project.default_stickiness)
        document = make_default_strategy(strategy, defaults) | {"id": "", "disabled": False}
        return {
            "name": defaults.flag,
            "project": self.project_id,
            "enabled": True,
            "impression_data": False,
            "stale": False,
            "variants": [],
            "strategies": [document],
            "dependencies": [],
        }

    def save(self, document: StrategyDefinition) -> str:
        set_default_strategy(
            self.project_id, self.environment, document, expected=self.version.expected, caller=self.caller
        )
        return f"Changed the default strategy of {self.environment} in {self.project_id}."

    def remove(self) -> str:
        set_default_strategy(self.project_id, self.environment, None, caller=self.caller)
        return f"{self.environment} in {self.project_id} has no default strategy of its own any more."

    def get_title(self) -> str:
        return f"Default strategy of {self.environment}"

    def get_breadcrumbs(self) -> Breadcrumbs:
        above = get_project_breadcrumbs(self.project)
        return above if self.locked else (*above, ("Settings", self.home))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            lead=f"Added when a flag without strategies is turned on in {self.environment}.",
            button="Save default strategy",
            types=self.list_types(),
            delete_button="Remove default strategy",
            deletion="Flags without strategies will be on for everyone once they are turned on. "
            "Flags that have a strategy keep it.",
            **kwargs,
        )
