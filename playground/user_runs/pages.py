"""/playground/users/: evaluating flags for a CSV of users, the caller's runs, and the result of one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse, reverse_lazy
from django.utils.functional import cached_property
from django_htmx.http import HttpResponseClientRedirect

from flagadmin.core.lists.charts import format_percent
from flagadmin.core.lists.pages import Column, Filter, curl_for, cut
from groups.console import ActionPage, Breadcrumbs, ConsolePage, ListPage
from playground.models import UserRun
from playground.outcomes.answer import describe_found
from playground.pages.form import ContextForm, make_form
from playground.pages.query import read_query
from playground.user_runs import runs
from playground.user_runs.evaluate import get_max_result_bytes
from playground.user_runs.file import (
    MAX_ROWS,
    find_own_users,
    forget_own_users,
    keep_own_users,
)
from playground.user_runs.runs import make_csv_download
from playground.user_runs.table_form import TablePage, UsersForm, list_runs_for_page
from playground.user_runs.worker import KEPT

API = "/api/admin/playground/users"
MAX_VARIANTS = 8  # of a flag on the page; its CSV has all of them
MAX_SPREADSHEET_LINES = 1_048_576


class UsersPage(TablePage):
    template_name = "user_runs/users.html"
    title = "Many users"
    form_class = UsersForm

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

    @property
    def picker(self) -> ContextForm:
        """The choice of projects, as in the playground."""
        sent = self.request.POST if self.request.method == "POST" else self.request.GET
        query = read_query(sent, default_environment=self.offered.default_environment)
        return make_form(query, self.offered, used=())

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            picker=self.picker,
            own=list_runs_for_page(self.caller),
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


class Look(NamedTuple):
    """How a kind of runs is shown: the ``parent`` is the page at ``url`` that begins them."""

    noun: str
    parent: str
    url: str
    template: str
    make_title: Callable[[UserRun], str]
    count_lines: Callable[[UserRun], int]
    list_rows: Callable[[UserRun], list[Any]]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class AssignedRow(NamedTuple):
    name: str
    results: list[tuple[str, int]]
    lacks: list[tuple[str, int]]


RESULTS = ("on", "off", "in between", "random", "unknown")


def _make_assigned_row(counted: dict[str, Any]) -> AssignedRow:
    lacks = sorted(counted["lacks"].items(), key=lambda item: (-item[1], item[0]))
    return AssignedRow(counted["name"], [(result, counted["results"][result]) for result in RESULTS], lacks)


LOOKS: dict[str, Look] = {
    UserRun.Kind.USERS: Look(
        "user",
        "Many users",
        "users",
        "user_runs/result.html",
        lambda run: f"{run.flag or 'Flags'} for {_count(run.rows, 'user')} in {run.environment}",
        lambda run: run.rows * run.flags,
        lambda run: [make_flag_row(counted, run.rows) for counted in run.counts],
    ),
    UserRun.Kind.ASSIGNMENTS: Look(
        "row",
        "Who had it",
        "assignments",
        "outcomes/assigned.html",
        lambda run: f"Who had {run.flag} in {run.environment}",
        lambda run: run.rows,
        lambda run: list(map(_make_assigned_row, run.counts)),
    ),
    UserRun.Kind.INCIDENT: Look(
        "user",
        "Which change did this",
        "incidents",
        "outcomes/found.html",
        lambda run: f"Which change did this in {run.environment}",
        lambda run: len(run.counts["changes"]),
        lambda run: [],
    ),
}


def join_counts(row: Any) -> str:
    if isinstance(row, AssignedRow):
        return "; ".join(f"{rows} {result}" for result, rows in row.results)
    return "; ".join(f"{words} {count}" for words, count, _ in row.counts)


class RunPage(ListPage):
    """A run: its progress, then the counts of each flag."""

    csv_name = "users-by-flag"
    default_sort = "name"
    noun = "flag,flags"
    none_yet = "No flags."
    columns = (
        Column(
            "name",
            "Flag",
            by=("name",),
            link='{% url "playground-flag" row.name %}?environment={{ run.environment|urlencode }}',
        ),
        Column(
            "on",
            "On",
            by=("on", "name"),
            csv=lambda row: getattr(row, "percent_text", ""),
            cell='<span class="row">{% include "includes/share_bar.html" with percent=row.percent %} '
            "{{ row.percent_text }}</span>",
        ),
        Column(
            "counts",
            "Users",
            csv=join_counts,
            cell='{% for words, count, mark in row.counts %}<span class="pill {{ mark }}">{{ count }} '
            "{{ words }}</span> {% endfor %}",
        ),
        Column(
            "variants",
            "Variants",
            csv=lambda row: "; ".join(map(" ".join, getattr(row, "variants", ()))),
            cell='{% for variant in row.shown_variants %}<span class="chip">{{ variant }}</span> '
            "{% empty %}–{% endfor %}",
        ),
    )
    filters = (Filter("q", "Find a flag"),)
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
        return LOOKS[self.run.kind].make_title(self.run)

    def get_breadcrumbs(self) -> Breadcrumbs:
        return [(LOOKS[self.run.kind].parent, reverse(LOOKS[self.run.kind].url))]

    def get_template_names(self) -> list[str]:
        done = self.run.state == UserRun.State.DONE
        return [LOOKS[self.run.kind].template if done else "user_runs/running.html"]

    def get_rows(self, values: dict[str, str]) -> list[Any]:
        text = values["q"].casefold()
        return [row for row in LOOKS[self.run.kind].list_rows(self.run) if text in row.name.casefold()]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        again = urlencode({"environment": self.run.environment, "flag": self.run.flag})
        found: dict[str, Any] = {}
        if self.run.kind == UserRun.Kind.INCIDENT and self.run.counts:
            found = describe_found(self.run, self.caller)
        return super().get_context_data(
            **found,
            run=self.run,
            again=f"{reverse(LOOKS[self.run.kind].url)}?{again}",
            days=KEPT.days,
            fits_spreadsheet=self.run.has_ended
            and bool(self.run.counts)
            and LOOKS[self.run.kind].count_lines(self.run) < MAX_SPREADSHEET_LINES,
            **kwargs,
        )


class ProgressPart(ConsolePage):
    """The progress of a run. Reloads the page once the run has ended."""

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
    """Removes the users kept for Who changes."""

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
        return f"{verb} for {_count(run.rows, LOOKS[run.kind].noun)}."
