"""/playground/users/: evaluating flags for a CSV of users, the caller's runs, and the result of one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse, reverse_lazy
from django.utils.functional import cached_property
from django_htmx.http import HttpResponseClientRedirect

from flagadmin.core.errors import AppError
from flagadmin.core.lists.charts import format_percent
from flagadmin.core.lists.pages import Column, Filter, curl_for, cut
from groups.console import ActionPage, ConsolePage, FormPage, ListPage
from playground.models import UserRun
from playground.pages.form import ContextForm, make_form, read_form_options
from playground.pages.query import read_query
from playground.user_runs import runs
from playground.user_runs.download import make_csv_download
from playground.user_runs.file import MAX_ROWS
from playground.user_runs.own_users import (
    MAX_OWN_USERS,
    find_own_users,
    forget_own_users,
    keep_own_users,
)
from playground.user_runs.space import get_max_result_bytes
from playground.user_runs.worker import KEPT

API = "/api/admin/playground/users"
PROBLEMS_SHOWN = 20
MAX_VARIANTS = 8  # of a flag on the page; its CSV has all
MAX_SPREADSHEET_LINES = 1_048_576
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


class UsersPage(FormPage):
    template_name = "user_runs/users.html"
    title = "Many users"
    form_class = UsersForm
    body_limit = settings.IMPORT_BODY_LIMIT

    def find(self) -> None:
        self.offered = read_form_options(self.caller)

    def get_initial(self) -> dict[str, Any]:
        initial = {name: self.request.GET.get(name, "") for name in ("environment", "flag")}
        return {
            "environment": initial["environment"] or self.offered.default_environment,
            "flag": initial["flag"],
        }

    def get_form_kwargs(self) -> dict[str, Any]:
        more = {"environments": self.offered.environments, "may_keep": self.caller.user is not None}
        return super().get_form_kwargs() | more

    def submit(self, form: UsersForm) -> str:
        values = form.cleaned_data
        projects = [name for name in self.request.POST.getlist("project") if name]
        body = values["file"].read()
        run = runs.create_run(
            body,
            caller=self.caller,
            environment=values["environment"],
            projects=projects or None,
            flag=values["flag"],
            file_name=values["file"].name or "",
        )
        if values.get("keep"):
            keep_own_users(body, run.rows, file_name=run.file_name, caller=self.caller)
        return reverse("user-run", args=[run.pk])

    def show_refusal(self, error: AppError, form: Any) -> None:
        """Shows problems of the file, which name rows and columns, beside it."""
        other = [problem for problem in error.details if problem.path in form.fields]
        if other or not error.details:
            super().show_refusal(error, form)
            return
        for problem in error.details[:PROBLEMS_SHOWN]:
            form.add_error("file", str(problem))
        if len(error.details) > PROBLEMS_SHOWN:
            form.add_error("file", f"Only the first {PROBLEMS_SHOWN} problems are listed.")

    @property
    def picker(self) -> ContextForm:
        """The choice of projects, as in the playground."""
        sent = self.request.POST if self.request.method == "POST" else self.request.GET
        query = read_query(sent, default_environment=self.offered.default_environment)
        return make_form(query, self.offered, used=())

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        own = [(run, run.get_state_display(), MARKS[run.state]) for run in runs.list_own_runs(self.caller)]
        return super().get_context_data(
            picker=self.picker,
            own=own,
            kept=find_own_users(self.caller),
            most_users=MAX_ROWS,
            most_runs=runs.MAX_RUNS,
            days=KEPT.days,
            limit=settings.IMPORT_BODY_LIMIT // 1_000_000,
            most_results=runs.MAX_RESULTS,
            result_limit=get_max_result_bytes() // 1_000_000,
            **kwargs,
        )

    def get_curl(self) -> str:
        call = curl_for(self.request, "POST", f"{API}?environment={self.offered.default_environment}")
        return f"{call} -H 'Content-Type: text/csv' --data-binary @users.csv"


@dataclass(frozen=True, slots=True)
class FlagRow:
    """The users' results for one flag."""

    name: str
    on: float
    off: float
    unknown: float
    variants: tuple[tuple[str, str], ...]
    users: int

    @property
    def percent(self) -> float:
        return 100 * self.on / self.users

    @property
    def percent_text(self) -> str:
        return format_percent(self.percent) if self.on or not self.unknown else "–"

    @property
    def shown_variants(self) -> list[str]:
        return cut([" ".join(each) for each in self.variants], MAX_VARIANTS)

    @property
    def counts(self) -> Iterator[tuple[str, str, str]]:
        """The words, the number and the mark of each result that occurs."""
        for words, mark in (("On", "on"), ("Off", "off"), ("Can't tell", "unknown")):
            count = {"on": self.on, "off": self.off, "unknown": self.unknown}[mark]
            if count:
                yield words, format_users(count), mark


def format_users(count: float) -> str:
    """A number of users; random results are counted with their share of calls."""
    if count == int(count):
        return f"{count:,.0f}"
    return f"≈ {count:,.0f}" if count >= 1 else "< 1"


def make_flag_row(counted: dict[str, Any], users: int) -> FlagRow:
    sums = {True: 0.0, False: 0.0, "unknown": 0.0}
    variants = []
    for result in counted["results"]:
        sums[result["isEnabled"]] += result["contexts"]
        if result["variant"] is not None:
            variants.append((result["variant"], format_users(result["contexts"])))
    return FlagRow(counted["name"], sums[True], sums[False], sums["unknown"], tuple(variants), users)


class RunPage(ListPage):
    """A run: how far it is, then the counts of each flag."""

    csv_name = "users-by-flag"
    default_sort = "name"
    columns = (
        Column("name", "Flag", by=("name",)),
        Column("on", "On", by=("on", "name")),
        Column("counts", "Users"),
        Column("variants", "Variants"),
    )
    filters = (Filter("q", "Find a flag"),)
    parents = (("Many users", reverse_lazy("users")),)
    api_call = f"GET {API}/{{run_id}}"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = super().get(request, *args, **kwargs)
        if not self.run.has_ended:
            response["Refresh"] = "2"
        return response

    @cached_property
    def run(self) -> UserRun:
        return runs.access_run(self.caller, self.kwargs["run_id"])

    def get_title(self) -> str:
        users = f"{self.run.rows:,} user{'' if self.run.rows == 1 else 's'}"
        return f"{self.run.flag or 'Flags'} for {users} in {self.run.environment}"

    def get_template_names(self) -> list[str]:
        return [f"user_runs/{'result' if self.run.state == UserRun.State.DONE else 'running'}.html"]

    def get_rows(self, values: dict[str, str]) -> list[FlagRow]:
        text = values["q"].casefold()
        return [
            make_flag_row(counted, self.run.rows)
            for counted in self.run.counts
            if text in counted["name"].casefold()
        ]

    def get_csv_cells(self, row: FlagRow) -> Sequence[Any]:
        counts = "; ".join(f"{words} {count}" for words, count, _ in row.counts)
        return [row.name, row.percent_text, counts, "; ".join(map(" ".join, row.variants))]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        again = urlencode({"environment": self.run.environment, "flag": self.run.flag})
        return super().get_context_data(
            run=self.run,
            again=f"{reverse('users')}?{again}",
            days=KEPT.days,
            fits_spreadsheet=self.run.rows * self.run.flags < MAX_SPREADSHEET_LINES,
            **kwargs,
        )


class ProgressPart(ConsolePage):
    """The progress of a run. Reloads the page once it has ended."""

    template_name = "user_runs/progress.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        run = runs.access_run(self.caller, kwargs["run_id"])
        if run.has_ended:
            return HttpResponseClientRedirect(reverse("user-run", args=[run.pk]))
        return self.render_to_response({"run": run})


class ResultDownload(ConsolePage):
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return make_csv_download(request, runs.access_run(self.caller, kwargs["run_id"]))


class ForgetOwnUsers(ActionPage):
    """Removes the users that are kept for Who changes."""

    success_url = reverse_lazy("users")

    def act(self) -> str:
        forget_own_users(self.caller)
        return "Who changes compares generated users again."


class DeleteRun(ActionPage):
    """Cancels a run, or deletes its result."""

    success_url = reverse_lazy("users")

    def act(self) -> str:
        run = runs.delete_run(self.caller, self.kwargs["run_id"])
        verb = "Deleted the result" if run.has_ended else "Canceled the evaluation"
        return f"{verb} for {run.rows:,} users."
