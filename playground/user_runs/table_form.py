"""The form with a table of users, and the list of the caller's runs below it."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.conf import settings

from flagadmin.core.errors import AppError
from groups.console import Caller, FormPage
from playground.models import UserRun
from playground.pages.form import read_form_options
from playground.user_runs import runs
from playground.user_runs.evaluate import PROBLEMS_SHOWN
from playground.user_runs.file import MAX_OWN_USERS

MARKS = {"waiting": "info", "running": "info", "done": "on", "failed": "warn"}


class UsersForm(forms.Form):
    file = forms.FileField(
        label="CSV file",
        help_text="The header names context fields: userId, country, … or properties.NAME. A row for each user.",
        widget=forms.ClearableFileInput(attrs={"accept": ".csv,text/csv", "class": "drop"}),
    )
    environment = forms.ChoiceField()
    flag = forms.CharField(
        required=False,
        label="Only this flag",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    keep = forms.BooleanField(
        required=False,
        label="Use these users in Who changes",
        help_text=f"Keeps up to {MAX_OWN_USERS:,} of them, only for you, in place of earlier ones, until you "
        "remove them. Forms, imports and comparisons then count these users instead of generated ones.",
    )

    def __init__(self, *args: Any, environments: Sequence[str], may_keep: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not may_keep:
            del self.fields["keep"]
        field = self.fields["environment"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(name, name) for name in environments]


def list_runs_for_page(caller: Caller) -> list[tuple[UserRun, str, str]]:
    """The caller's runs, each with the words and the mark of its state."""
    return [(run, run.get_state_display(), MARKS[run.state]) for run in runs.list_own_runs(caller)]


class TablePage(FormPage):
    """A form with a table, whose problems are shown beside its field."""

    body_limit = settings.IMPORT_BODY_LIMIT

    def find(self) -> None:
        self.offered = read_form_options(self.caller)

    def get_initial(self) -> dict[str, Any]:
        asked = {name: self.request.GET.get(name, "") for name in ("environment", "flag")}
        return asked | {"environment": asked["environment"] or self.offered.default_environment}

    def show_refusal(self, error: AppError, form: Any) -> None:
        """Shows problems of the file, with rows and columns, beside its field."""
        other = [problem for problem in error.details if problem.path in form.fields]
        if other or not error.details:
            super().show_refusal(error, form)
            return
        for problem in error.details[:PROBLEMS_SHOWN]:
            form.add_error("file", str(problem))
        if len(error.details) > PROBLEMS_SHOWN:
            form.add_error("file", f"Only the first {PROBLEMS_SHOWN} problems are listed.")
