"""Console forms that create a flag (…/features/new), edit its metadata (…/NAME/edit) and its links.

Creates a flag that is on from the start, in one environment.

Console forms that copy a flag (…/NAME/clone) and move it to another project (…/NAME/move).
"""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.functional import cached_property

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import ValidationError
from flagadmin.core.lists.pages import MAX_OPTIONS
from groups.access import Caller
from groups.console import EditPage, FormPage, Permission
from groups.models import Group, User
from playground.engine.strategy_types import FLEXIBLE_ROLLOUT, ROLLOUT
from projects.access import access_flag, access_project
from projects.console import InProjectPage, OnFlagPage, flag_url
from projects.flags.actions import NewFlag, access_link, create_flag, update_flag, update_link
from projects.flags.copies.clone import clone_flag
from projects.flags.copies.move import move_flag
from projects.flags.environments.actions import enable_flag
from projects.flags.name_rules import make_owner_columns
from projects.flags.queries import make_link_document, make_metadata_document
from projects.history.queries import readable_events
from projects.members.queries import find_holder, name_holder, suggest_holders_in
from projects.models import Environment, Flag, FlagType, Project, TagType
from projects.reverts.change_plan import tell_done
from projects.strategies.actions import add_strategy


class MetadataForm(forms.Form):
    """``here`` is the flag's current type, which stays selectable even if it is not a known flag type."""

    type = forms.ChoiceField(widget=forms.RadioSelect)
    description = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 2}))
    owner = forms.CharField(
        required=False,
        max_length=255,
        help_text="A user name, an email address, or group: NAME.",
        widget=forms.TextInput(
            attrs={"list": "known", "autocapitalize": "none", "spellcheck": "false", "autocomplete": "off"}
        ),
    )
    impression_data = forms.BooleanField(
        required=False, label="Impression data", help_text="SDKs emit an event for each evaluation."
    )
    stale = forms.BooleanField(
        required=False, label="Stale", help_text="No longer needed; it can be removed from the code."
    )

    def __init__(self, *args: Any, flag_type: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rows = FlagType.objects.values_list("id", "name", "description")
        types = {key: f"{name}: {description}" if description else name for key, name, description in rows}
        if flag_type:
            types.setdefault(flag_type, flag_type)
        self.fields["type"].initial = "release"
        self.fields["type"].choices = list(types.items())  # type: ignore[attr-defined]

    def clean_owner(self) -> User | Group | None:
        text = self.cleaned_data["owner"].strip()
        if not text:
            return None
        try:
            owner = find_holder(text, "")
        except ValidationError as error:
            raise forms.ValidationError(error.message) from error
        if owner is None or (isinstance(owner, User) and owner.is_service):
            raise forms.ValidationError(f"Person or group {text} not found.")
        return owner

    def owner_columns(self) -> dict[str, Any]:
        owner = self.cleaned_data["owner"]
        kind = None if owner is None else "group" if isinstance(owner, Group) else "user"
        return make_owner_columns(kind, owner and owner.pk)


class NewFlagForm(MetadataForm):
    name = forms.CharField(
        max_length=100,
        widget=forms.TextInput(
            attrs={"autocapitalize": "none", "spellcheck": "false", "autocomplete": "off", "autofocus": True}
        ),
    )
    environment = forms.ChoiceField(required=False, label="Turn on in")
    rollout = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=100,
        label="Percent of users",
        help_text="Default: the default strategy of the environment.",
    )
    tags = forms.CharField(required=False)
    stale = None  # type: ignore[assignment]
    field_order = [
        "name",
        "type",
        "environment",
        "rollout",
        "description",
        "owner",
        "impression_data",
        "tags",
    ]

    def __init__(self, *args: Any, project: Project, environments: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if environments:
            choices = [("", "No environment yet"), *((name, name) for name in environments)]
            self.fields["environment"].choices = choices  # type: ignore[attr-defined]
        else:
            del self.fields["environment"], self.fields["rollout"]
        types = ", ".join(TagType.objects.values_list("name", flat=True))
        self.fields["name"].help_text = describe_naming(project)
        self.fields["tags"].help_text = f"As type:value, separated by commas. Types: {types or 'none yet'}."

    def pairs(self) -> list[tuple[str, str]]:
        texts = [text.strip() for text in self.cleaned_data["tags"].split(",") if text.strip()]
        return [(kind, value) for kind, _, value in (text.partition(":") for text in texts)]


def describe_naming(project: Project) -> str:
    """Help text on allowed names, including the project's naming pattern and example."""
    text = "Must be unique. Cannot be changed later. Letters, digits and - . _ ~"
    if project.naming_pattern:
        text += f" Pattern of this project: {project.naming_pattern}"
    if project.naming_example:
        text += f", for example {project.naming_example}"
    return f"{text}. {project.naming_description}".rstrip()


class NewFlagPage(InProjectPage, FormPage):
    template_name = "flags/form.html"
    title = "New flag"
    form_class = NewFlagForm
    button = "Create flag"
    api_call = "POST /api/admin/projects/{project_id}/features"
    api_example = {"name": "one-click-pay", "type": "release"}

    def find(self) -> None:
        self.project = access_project(self.caller, self.kwargs["project_id"])
        self.caller.check(Permission.CREATE_FEATURE, project=self.project.pk)

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"project": self.project, "environments": self.environments}

    @cached_property
    def environments(self) -> list[str]:
        """The environments in which the caller may turn the new flag on, with a strategy."""
        needed = (Permission.CREATE_FEATURE_STRATEGY, Permission.UPDATE_FEATURE_ENVIRONMENT)
        used = {*self.project.environments.values_list("name", flat=True)}
        return [
            name
            for name in Environment.objects.names()
            if name in used
            and all(
                self.caller.can(permission, project=self.project.pk, environment=name)
                for permission in needed
            )
        ]

    def get_initial(self) -> dict[str, Any]:
        """A link may name the flag: ``?name=instant-refunds``."""
        return super().get_initial() | {"name": self.request.GET.get("name", "")}

    def submit(self, form: NewFlagForm) -> str:
        data = form.cleaned_data
        new = NewFlag(
            name=data["name"],
            type=data["type"],
            description=data["description"],
            impression_data=data["impression_data"],
            tags=form.pairs(),
            **form.owner_columns(),
        )
        project, environment, rollout = self.project.pk, data.get("environment", ""), data.get("rollout")
        flag = create_running_flag(project, new, environment, rollout, caller=self.caller)
        share = "" if rollout is None else f" for {rollout} % of users"
        state = f"on{share} in {environment}" if environment else "switched off in every environment"
        return self.done(f"Created flag {flag.name}, {state}.", flag_url(flag.project_id, flag.name))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        known = suggest_holders_in(self.kwargs["project_id"])
        return super().get_context_data(known=known, **kwargs)


class EditFlagPage(OnFlagPage, EditPage):
    template_name = "flags/form.html"
    form_class = MetadataForm
    title = "Edit {name}"
    button = "Save flag"
    api_call = "PUT /api/admin/projects/{project_id}/features/{name}"
    api_example = {"type": "release", "stale": True}

    def find(self) -> None:
        key = self.kwargs["project_id"], self.kwargs["name"]
        self.flag = access_flag(self.caller, *key, archived=False, permission=Permission.UPDATE_FEATURE)

    def get_events(self) -> QuerySet[AuditEvent]:
        kinds = (EventType.FEATURE_METADATA_UPDATED, EventType.FEATURE_STALE_ON, EventType.FEATURE_STALE_OFF)
        return readable_events(self.caller).filter(feature=self.flag.name, type__in=kinds)

    def get_current_document(self) -> dict[str, Any]:
        return make_metadata_document(self.flag)

    def get_initial(self) -> dict[str, Any]:
        values = {name: getattr(self.flag, name) for name in MetadataForm.base_fields if name != "owner"}
        return values | {"owner": name_holder(self.flag.owner_group or self.flag.owner_user)}

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"flag_type": self.flag.type}

    def submit(self, form: MetadataForm) -> str:
        changes = form.cleaned_data | form.owner_columns()
        changes["description"] = changes["description"] or None
        del changes["owner"]
        key, expected = (self.kwargs["project_id"], self.kwargs["name"]), self.version.expected
        flag = update_flag(*key, changes, expected=expected, caller=self.caller)
        tell_done(self.request, f"Changed flag {flag.name}.", caller=self.caller)
        return flag_url(flag.project_id, flag.name)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        known = suggest_holders_in(self.kwargs["project_id"])
        return super().get_context_data(known=known, **kwargs)


class LinkForm(forms.Form):
    url = forms.CharField(label="URL", widget=forms.URLInput)
    title = forms.CharField(required=False)


class EditLinkPage(OnFlagPage, EditPage):
    """Edits a link of a flag."""

    title = "Edit the link {page.link}"
    template_name = "console/form.html"
    form_class = LinkForm
    button = "Save link"
    api_call = "PUT /api/admin/projects/{project_id}/features/{name}/link/{link_id}"

    def find(self) -> None:
        permission = Permission.UPDATE_FEATURE
        self.flag = access_flag(self.caller, *self.place, archived=False, permission=permission)
        self.link = access_link(self.flag, self.kwargs["link_id"])

    def get_events(self) -> QuerySet[AuditEvent]:
        changes = readable_events(self.caller).filter(type=EventType.FEATURE_LINK_UPDATED)
        return changes.filter(feature=self.flag.name, after__id=str(self.link.pk))

    def get_current_document(self) -> dict[str, Any]:
        return make_link_document(self.link)

    def get_initial(self) -> dict[str, Any]:
        return self.get_current_document()

    def submit(self, form: LinkForm) -> str:
        data, link_id, expected = form.cleaned_data, self.kwargs["link_id"], self.version.expected
        title = data["title"] or None
        update_link(*self.place, link_id, data["url"], title, expected=expected, caller=self.caller)
        return self.done(f"Changed the link {data['url']}.", flag_url(*self.place))

    def get_api_body(self) -> dict[str, Any]:
        return {"url": self.link.url, "title": self.link.title}


@transactional
def create_running_flag(
    project_id: str, new: NewFlag, environment: str, rollout: int | None, *, caller: Caller
) -> Flag:
    """Creates a flag and turns it on for a percentage of users, or with the default strategy (None).

    Without an ``environment`` it is off in every one. Raises the errors of ``create_flag``, ``add_strategy`` and
    ``enable_flag``.
    """
    flag = create_flag(project_id, new, caller=caller)
    if environment:
        if rollout is not None:
            strategy = {"name": FLEXIBLE_ROLLOUT, "parameters": {ROLLOUT.name: str(rollout)}}
            add_strategy(project_id, new.name, environment, strategy, caller=caller)
        enable_flag(project_id, new.name, environment, caller=caller)
    return flag


COPIED = "Strategies, variants, tags and dependencies are copied. The copy is off in every environment."
MOVED = "Everything moves with it. API tokens for the old project alone stop getting the flag."


class CloneForm(forms.Form):
    new_name = forms.CharField(
        label="Name of the copy",
        widget=forms.TextInput(attrs={"autocapitalize": "none", "spellcheck": "false", "autofocus": True}),
    )


class FlagFormPage(OnFlagPage, FormPage):
    """A form about the active flag in the URL, for callers with ``permission`` in its project."""

    template_name = "console/form.html"
    permission: Permission

    def find(self) -> None:
        self.flag = access_flag(self.caller, *self.place, archived=False)
        self.caller.check(self.permission, project=self.flag.project_id)


class ClonePage(FlagFormPage):
    permission = Permission.CREATE_FEATURE
    form_class = CloneForm
    title, button = "Copy {name}", "Copy flag"
    problem_fields = {"name": "new_name"}
    api_call = "POST /api/admin/projects/{project_id}/features/{name}/clone"

    def get_form(self, form_class: Any = None) -> Any:
        form = super().get_form(form_class)
        form.fields["new_name"].help_text = describe_naming(self.flag.project)
        return form

    def submit(self, form: CloneForm) -> str:
        flag = clone_flag(*self.place, form.cleaned_data["new_name"], caller=self.caller)
        done = f"Created {flag.name} as a copy of {self.place[1]}, off in every environment."
        return self.done(done, flag_url(flag.project_id, flag.name))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(lead=COPIED, **kwargs)

    def get_api_body(self) -> dict[str, str]:
        return {"name": f"{self.place[1]}-2"}


class MoveForm(forms.Form):
    """``targets`` are offered; a list longer than MAX_OPTIONS becomes a text input."""

    project = forms.CharField(label="Target project")

    def __init__(self, *args: Any, targets: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if len(targets) <= MAX_OPTIONS:
            choices = [("", "Select a project"), *((pk, f"{name} ({pk})") for pk, name in targets)]
            self.fields["project"].widget = forms.Select(choices=choices)
        else:
            self.fields["project"].help_text = "The id of the project."


class MovePage(FlagFormPage):
    permission = Permission.MOVE_FEATURE_TOGGLE
    form_class = MoveForm
    title, button = "Move {name}", "Move flag"
    problem_fields = {"newProjectId": "project"}
    api_call = "POST /api/admin/projects/{project_id}/features/{name}/changeProject"
    api_example = {"newProjectId": "other-project"}

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"targets": self.targets()}

    def targets(self) -> list[tuple[str, str]]:
        """The other projects to which this caller may move flags: (id, name)."""
        projects = Project.objects.active().readable_by(self.caller).exclude(pk=self.flag.project_id)
        return [
            (pk, name)
            for pk, name in projects.order_by("name").values_list("id", "name")
            if self.caller.can(self.permission, project=pk)
        ]

    def submit(self, form: MoveForm) -> str:
        flag = move_flag(*self.place, form.cleaned_data["project"], caller=self.caller)
        return self.done(f"Moved {flag.name} to {flag.project_id}.", flag_url(flag.project_id, flag.name))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(lead=MOVED, **kwargs)
