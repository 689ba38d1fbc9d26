"""Pages of a project's settings and environments, with their default strategies; archives and revives projects.

A flag that is turned on in an environment without a strategy gets a copy of the default one.
"""

from itertools import groupby
from operator import attrgetter
from typing import Any

from django import forms
from django.db.models import QuerySet

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.edit_conflicts import hash_document
from flagadmin.core.edit_conflicts.forms import FormVersion
from flagadmin.core.errors import ValidationError, choices, pluralize
from groups.console import ActionPage, Breadcrumbs, EditPage, Permission
from playground.engine.definitions import FlagDefinition, StrategyDefinition
from playground.engine.strategy_types import FLEXIBLE_ROLLOUT
from projects.access import access_project, find_project_environment
from projects.console import InProjectPage, get_project_breadcrumbs, project_url
from projects.drafts import NewFlagEdit
from projects.history.queries import readable_events
from projects.models import Flag, Project, ProjectEnvironment, Segment
from projects.projects.actions import archive_project, check_may_update, revive_project, update_project
from projects.projects.environments import (
    DEFAULT_STRATEGY_PERMISSIONS,
    add_environment,
    remove_environment,
    require_comment,
    set_default_strategy,
    set_policy,
    validate_default_strategy,
)
from projects.projects.head import make_project_head
from projects.projects.pages import ModeField
from projects.projects.queries import list_project_environment_summaries, make_settings_document
from projects.projects.required_comments import MAX_APPROVALS
from projects.projects.settings import SETTINGS
from projects.strategies.editor import SharedStrategyEditor, describe_whole_strategy
from projects.strategies.forms import list_stickiness_choices
from projects.strategies.rules import StrategyDefaults, make_default_strategy, make_strategy
from projects.strategies.sentences import Summary, summarize_strategy

POLICIES = {
    "": "None",
    **{str(n): f"Request with {pluralize(n, 'approval')}" for n in range(MAX_APPROVALS + 1)},
}
"""The possible requirements for changes of an environment's results, by the value of the form."""

# Values sent by the buttons of an environment, by whether its changes will need a comment.
COMMENTS = {
    "require-comment": (True, "Changes in {} now need a comment."),
    "allow-no-comment": (False, "Changes in {} no longer need a comment."),
}


class LinksField(forms.CharField):
    """One link per line: words, a space and its URL. The value is the stored list, with these two keys."""

    widget = forms.Textarea(
        attrs={"rows": 2, "spellcheck": "false", "autocapitalize": "none", "class": "mono"}
    )

    def __init__(
        self, *args: Any, keys: tuple[str, str], without_words: str | None = "", **kwargs: Any
    ) -> None:
        self.keys, self.without_words = keys, without_words
        super().__init__(*args, **kwargs)

    def to_python(self, value: Any) -> Any:
        lines = (super().to_python(value) or "").splitlines()
        parts = [line.strip().rpartition(" ") for line in lines if line.strip()]
        words_key, url_key = self.keys
        return [{words_key: words.strip() or self.without_words, url_key: url} for words, _, url in parts]

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, list):
            words_key, url_key = self.keys
            return "\n".join(f"{link[words_key] or ''} {link[url_key]}".strip() for link in value)
        return value

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.to_python(data) != initial)


class SettingsForm(forms.Form):
    """Settings whose fields are not declared have those of the model."""

    description = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 2}))
    mode = ModeField()
    default_stickiness = forms.ChoiceField()
    flag_limit = forms.IntegerField(required=False, min_value=1)
    naming_pattern = forms.CharField(
        required=False,
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocapitalize": "none"}),
    )
    naming_example = forms.CharField(required=False)
    naming_description = forms.CharField(required=False)
    link_templates = LinksField(
        required=False,
        keys=("title", "urlTemplate"),
        without_words=None,
        help_text="On each line a title and a URL: Code https://code.example.com/search?q={{feature}}. "
        "{{feature}} is the flag's name, {{project}} the project's id.",
    )

    comment_links = LinksField(
        required=False,
        keys=("pattern", "url"),
        help_text="On each line a regular expression (RE2) and a URL: PAY-[0-9]+ https://tickets.example.com/{match}. "
        "{match} is what the expression matches, or its first group.",
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        of_model = forms.fields_for_model(Project, [setting.field for setting in SETTINGS])
        for setting in SETTINGS:
            field = self.fields.setdefault(setting.field, of_model[setting.field])
            field.label = setting.label
            field.help_text = setting.help or field.help_text
        options = dict.fromkeys([*list_stickiness_choices(project.pk), project.default_stickiness])
        self.fields["default_stickiness"].choices = [(name, name) for name in options]  # type: ignore[attr-defined]


class SettingsPage(InProjectPage, EditPage):
    template_name = "projects/settings.html"
    form_class = SettingsForm
    title = "Settings"
    button = "Save settings"
    api_call = "PUT /api/admin/projects/{project_id}"

    @property
    def problem_fields(self) -> dict[str, str]:  # type: ignore[override]
        return {setting.member: setting.field for setting in SETTINGS}

    def find(self) -> None:
        check_may_update(self.caller, self.kwargs["project_id"])
        self.project = access_project(self.caller, self.kwargs["project_id"])

    def get_events(self) -> QuerySet[AuditEvent]:
        events = readable_events(self.caller)
        return events.filter(project=self.project.pk, type=EventType.PROJECT_UPDATED)

    def get_current_document(self) -> dict[str, Any]:
        return make_settings_document(self.project)

    def get_initial(self) -> dict[str, Any]:
        return {setting.field: getattr(self.project, setting.field) for setting in SETTINGS}

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"project": self.project}

    def submit(self, form: SettingsForm) -> str:
        expected = self.version.expected
        project = update_project(self.project.pk, form.cleaned_data, expected=expected, caller=self.caller)
        return self.done(f"Changed the settings of {project.name}.", project_url(project.pk))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        project = self.project
        return super().get_context_data(
            **make_project_head(project, "project-settings", caller=self.caller),
            field_groups=[
                (group, [kwargs["form"][setting.field] for setting in settings])
                for group, settings in groupby(SETTINGS, key=attrgetter("group"))
            ],
            may_archive=self.caller.can(Permission.DELETE_PROJECT, project=project.pk),
            active=Flag.objects.active().filter(project=project).count(),
            **kwargs,
        )

    def get_api_body(self) -> dict[str, Any]:
        names = {setting.member.partition(".")[0] for setting in SETTINGS}
        return {name: value for name, value in make_settings_document(self.project).items() if name in names}


class ApprovalsPage(InProjectPage):
    """The project's environments, with their default strategies and what their changes need."""

    template_name = "projects/environments.html"
    title = "Approvals"

    def find(self) -> None:
        check_may_update(self.caller, self.kwargs["project_id"])
        super().find()

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            **make_project_head(self.project, "project-approvals", caller=self.caller),
            places=list_environment_rows(self.project),
            policies=POLICIES.items(),
            may_write=self.caller.can(Permission.UPDATE_PROJECT, project=self.project.pk),
            **kwargs,
        )


def list_environment_rows(project: Project) -> list[dict[str, Any]]:
    """All environments with their settings in the project and a description of their default strategy."""
    segments = dict(Segment.objects.values_list("id", "name"))
    links = ProjectEnvironment.objects.needing_requests().filter(project=project)
    policies = {link.environment_id: link for link in links}
    defaults = StrategyDefaults(flag="", stickiness=project.default_stickiness)
    return [
        row
        | {
            "summary": summarize_strategy(
                make_default_strategy(row["defaultStrategy"], defaults), segments=segments
            ),
            "expected": hash_document(row["defaultStrategy"]),
            "policy": str(link.required_approvals) if (link := policies.get(row["name"])) else "",
            "rules": len(link.approval_rules) if link else 0,
        }
        for row in list_project_environment_summaries(project)
    ]


class ProjectAction(ActionPage):
    def get_success_url(self) -> str:
        return project_url(self.kwargs["project_id"], "project-settings")


class Environments(ProjectAction):
    def get_success_url(self) -> str:
        return project_url(self.kwargs["project_id"], "project-approvals")

    def act(self) -> str:
        project_id, name = self.kwargs["project_id"], self.request.POST.get("environment", "")
        if self.request.POST.get("do") == "remove":
            expected = FormVersion.sent(self.request.POST).expected
            remove_environment(project_id, name, expected=expected, caller=self.caller)
            return f"{project_id} no longer uses {name}."
        if (do := self.request.POST.get("do")) in COMMENTS:
            required, done = COMMENTS[do]
            require_comment(project_id, name, required, caller=self.caller)
            return done.format(name)
        if self.request.POST.get("do") == "approvals":
            return self._set_policy(project_id, name)
        add_environment(project_id, name, caller=self.caller)
        return f"{project_id} now uses {name}."

    def _set_policy(self, project_id: str, name: str) -> str:
        approvals = self.request.POST.get("approvals", "")
        if approvals not in POLICIES:
            raise ValidationError.at("approvals", f"must be one of {choices(POLICIES)}, not {approvals}")
        set_policy(project_id, name, int(approvals) if approvals else None, caller=self.caller)
        if not approvals:
            return f"Changes of {name} need no change request."
        return f"Changes of {name} need a change request with {pluralize(int(approvals), 'approval')}."


class Archive(ProjectAction):
    def act(self) -> str:
        project = archive_project(self.kwargs["project_id"], caller=self.caller)
        return f"Archived project {project.name}."


class Revive(ProjectAction):
    def act(self) -> str:
        project = revive_project(self.kwargs["project_id"], caller=self.caller)
        return f"Revived project {project.name}; its flags stay archived."


class DefaultStrategyPage(SharedStrategyEditor):
    title = "Default strategy of {page.environment}"
    permissions = DEFAULT_STRATEGY_PERMISSIONS
    api_call = "POST /api/admin/projects/{project_id}/environments/{environment}/default-strategy"

    def find(self) -> None:
        self.project = access_project(self.caller, self.kwargs["project_id"])
        self.project_id, self.environment = self.project.pk, self.kwargs["environment"]
        self.home = project_url(self.project_id, "project-approvals")
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
        """The configured strategy, or an empty one of the newly chosen type."""
        name = self.request.POST.get("name") or self.kept["name"]
        return self.kept if name == self.kept["name"] else make_strategy({"name": name}, self.defaults)

    def check(self, document: StrategyDefinition) -> StrategyDefinition:
        return validate_default_strategy(self.project, document, stored=self.configured)

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
