"""Console forms that copy a flag (…/NAME/clone) and move it to another project (…/NAME/move)."""

from typing import Any

from django import forms

from flagadmin.core.lists.pages import MAX_OPTIONS
from groups.console import FormPage, Permission
from projects.access import access_flag
from projects.console import OnFlagPage, flag_url
from projects.flags.copies.clone import clone_flag
from projects.flags.copies.move import move_flag
from projects.flags.form_pages import describe_naming
from projects.models import Project

COPIED = "Strategies, variants, tags and dependencies are copied. The copy is off in every environment."
MOVED = "Everything moves with it. API tokens for the old project only no longer get the flag."


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
