"""Pages of analyses: all of them, a form for one of a flag, and what came out."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.db.models.fields.json import KT
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property
from django_htmx.http import HttpResponseClientRedirect

from flagadmin.core.http.responses import iso
from flagadmin.core.lists.pages import curl_for, make_csv_response
from groups.access import Caller
from groups.console import ActionPage, Breadcrumbs, Column, Filter, ListPage
from playground.models import Analysis
from playground.outcomes import experiment
from playground.outcomes.analyses import pictures
from playground.outcomes.analyses.actions import (
    CSV_COLUMNS,
    MAKER,
    MAX_NAME_LENGTH,
    access_analysis,
    create_analysis,
    delete_analysis,
    list_csv_rows,
    may_delete,
    read_result,
)
from playground.outcomes.analyses.design import KEEP, KINDS, LEAVE_OUT, Design, read_measures
from playground.outcomes.pages import QueryForm, TimeInput
from playground.outcomes.table import MAX_ROWS
from playground.pages.form import read_form_options
from playground.user_runs.table_form import MARKS, TablePage
from projects.access import access_flag
from projects.console import OnFlagPage, api_path, flag_url, get_flag_breadcrumbs
from projects.history.changes import make_event_rows
from projects.history.queries import readable_events
from projects.models import Flag

EXAMPLE = """\
userId,time,bought,revenue
42,2026-11-21T14:05:00Z,1,12.50
7,2026-11-21T14:06:30Z,0,0"""
MAX_DECISIONS = 3


def list_url(flag: str) -> str:
    return f"{reverse('analyses')}?flag={flag}"


def analysis_url(analysis: Analysis, page: str = "analysis") -> str:
    return reverse(page, args=[analysis.flag.project_id, analysis.flag.name, analysis.pk])


class AnalysesPage(ListPage):
    template_name = "outcomes/analyses.html"
    title = "Did it work"
    csv_name = "analyses"
    default_sort = "-when"
    lead = (
        "What came of flags, worked out afterwards from a table of what users did. "
        "Nothing has to be tracked beforehand."
    )
    noun = "analysis,analyses"
    columns = (
        Column("name", "Question", by=("name",), link="{{ row.url }}", css="own-line"),
        Column("flag", "Flag", by=("flag__name",), link='{% url "flag" row.flag.project_id row.flag.name %}'),
        Column("environment", "Environment", by=("environment",), value="environment_id"),
        Column("sentence", "What came out", shown='default:"–"|truncatechars:200'),
        Column("state", "State", by=("state",), value="state_label", pill="{{ row.mark }}"),
        Column("maker", "Asked by", by=("maker",), csv="caller_name"),
        Column("when", "When", by=("created_at",), shown="ago"),
    )
    filters = (Filter("q", "Question or flag", by=("name", "flag__name")), Filter("flag", "Flag"))

    def get_rows(self, values: dict[str, str]) -> Any:
        rows = Analysis.objects.filter(flag__in=Flag.objects.readable_by(self.caller))
        if values["flag"]:
            rows = rows.filter(flag__name=values["flag"])
        said = {"sentence": KT("result__sentence"), "maker": MAKER}
        return rows.select_related("flag").defer("body", "result").annotate(**said)

    def complete(self, rows: list[Any]) -> list[Any]:
        for row in rows:
            row.url, row.mark, row.state_label = analysis_url(row), MARKS[row.state], row.get_state_display()
        return rows

    def get_beginning(self) -> tuple[str, str]:
        if self.flag is None:
            return reverse("all-flags"), "Show all flags"
        return reverse("analysis-new", args=[self.flag.project_id, self.flag.name]), "Analyze it"

    @property
    def none_yet(self) -> str:  # type: ignore[override]
        if self.flag is None:
            return "No analyses yet. Begin one with More → Did it work? on the page of a flag."
        return "No analyses of this flag."

    @property
    def is_searched(self) -> bool:
        return bool(self.request.GET.get("q")) or (self.flag is None and super().is_searched)

    @cached_property
    def flag(self) -> Flag | None:
        """The one whose analyses are listed."""
        named = Flag.objects.readable_by(self.caller).filter(name=self.request.GET.get("flag", ""))
        return named.first()

    def get_curl(self) -> str:
        if self.flag is None:
            return ""
        return curl_for(self.request, "GET", f"{api_path(self.flag.project_id, self.flag.name)}/analyses")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(flag=self.flag, **kwargs)


class Names(forms.CharField):
    """Columns, separated by commas."""

    widget = forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"})

    def __init__(self, label: str, help_text: str = "") -> None:
        super().__init__(required=False, label=label, help_text=help_text)

    def clean(self, value: Any) -> Any:
        return [text.strip() for text in super().clean(value).split(",") if text.strip()]


class AnalysisForm(QueryForm):
    name = forms.CharField(
        label="Question", max_length=MAX_NAME_LENGTH, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    file = forms.FileField(
        label="Table",
        help_text="CSV with a header or lines of JSON, also with gzip, or Parquet. A column named time, and fields.",
        widget=forms.ClearableFileInput(
            attrs={"accept": ".csv,.ndjson,.jsonl,.gz,.parquet,text/csv", "class": "drop"}
        ),
    )
    environment = forms.ChoiceField()
    since = forms.DateTimeField(label="From", widget=TimeInput)
    until = forms.DateTimeField(label="To", widget=TimeInput)
    proportion = Names("Yes or no", "Columns with 1 or 0, such as bought; separated by commas.")
    mean = Names("Sums", "Columns with numbers that add up, such as revenue.")
    ratio = Names("Ratios", "Two columns, such as revenue/visits.")
    method = forms.ChoiceField(
        label="Check results",
        choices=[("sequential", "At any time"), ("fixed", "Once, at the end")],
        help_text="Looking once gives narrower intervals, which hold only then.",
    )
    unit = forms.CharField(
        required=False,
        label="Unit",
        help_text="The field by which the flag divided its users, if there were several.",
    )
    control = forms.CharField(required=False, label="Control", help_text="off, or a variant.")
    covariate = forms.CharField(
        required=False,
        label="Known from before",
        help_text=f"A column, or {experiment.BEFORE}: the same measures before the period. Makes intervals narrower.",
    )
    exposure = forms.CharField(
        required=False, label="Exposure", help_text="A column with 1 where the user saw the feature."
    )
    segment = Names("Break down by", "Columns, such as country.")
    crossovers = forms.ChoiceField(
        label="Users who changed sides",
        choices=[(KEEP, "Count them where they began"), (LEAVE_OUT, "Leave them out")],
    )

    def __init__(self, *args: Any, environments: Sequence[str], caller: Caller, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.offer_queries(caller)
        field = self.fields["environment"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(name, name) for name in environments]

    def make_design(self) -> Design:
        values = self.cleaned_data
        texts = ("since", "until", "unit", "control", "covariate", "exposure", "crossovers", "method")
        return Design(
            measures=read_measures({kind: values[kind] for kind in KINDS}),
            segments=values["segment"],
            **{name: values[name] for name in texts},
        )


class NewAnalysisPage(OnFlagPage, TablePage):
    template_name = "outcomes/analysis_new.html"
    title = "Did it work?"
    form_class = AnalysisForm
    problem_fields = {"from": "since", "to": "until"}

    def find(self) -> None:
        self.flag = access_flag(self.caller, *self.place)
        self.offered = read_form_options(self.caller)

    def get_form_kwargs(self) -> dict[str, Any]:
        given = {"environments": self.offered.environments, "caller": self.caller}
        return super().get_form_kwargs() | given

    def get_initial(self) -> dict[str, Any]:
        today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
        return super().get_initial() | {"since": today - timedelta(days=14), "until": today}

    def submit(self, form: AnalysisForm) -> str:
        values = form.cleaned_data
        file = values["file"]
        analysis = create_analysis(
            file.read() if file else b"",
            form.make_design(),
            project=self.flag.project_id,
            flag=self.flag.name,
            environment=values["environment"],
            name=values["name"],
            file_name=file.name or "" if file else "",
            caller=self.caller,
            query=values.get("query", ""),
        )
        return analysis_url(analysis)

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (*get_flag_breadcrumbs(self.flag), ("Analyses", list_url(self.flag.name)))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            flag=self.flag,
            missing="" if experiment.is_installed() else str(experiment.ExtraMissing()),
            most_rows=MAX_ROWS,
            limit=settings.IMPORT_BODY_LIMIT // 1_000_000,
            example=EXAMPLE,
            **kwargs,
        )

    def get_curl(self) -> str:
        initial = self.get_initial()
        query = f"environment={self.offered.default_environment}&name=Question&proportion=bought"
        period = f"from={iso(initial['since'])}&to={iso(initial['until'])}"
        url = f"{api_path(self.flag.project_id, self.flag.name)}/analyses?{query}&{period}"
        return f"{curl_for(self.request, 'POST', url)} -H 'Content-Type: text/csv' --data-binary @orders.csv"


class OfAnalysis(OnFlagPage):
    """A page of one analysis, which whoever may read its flag may read."""

    analysis: Analysis

    def find(self) -> None:
        self.flag = access_flag(self.caller, *self.place)
        self.analysis = access_analysis(self.flag, str(self.kwargs["analysis_id"]))


class AnalysisPage(OfAnalysis):
    """Its progress, then what came out."""

    title = "{page.analysis.name}"
    api_call = "GET {page.api}/analyses/{analysis_id}"

    @property
    def api(self) -> str:
        return api_path(self.flag.project_id, self.flag.name)

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = super().get(request, *args, **kwargs)
        if not self.analysis.has_ended:
            response["Refresh"] = "2"
        return response

    def get_template_names(self) -> list[str]:
        done = self.analysis.result is not None
        return ["outcomes/analysis.html" if done else "outcomes/analysis_running.html"]

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (*get_flag_breadcrumbs(self.flag), ("Analyses", list_url(self.flag.name)))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        analysis, design = self.analysis, Design.from_json(self.analysis.design)
        return super().get_context_data(
            flag=self.flag,
            flag_url=flag_url(self.flag.project_id, self.flag.name),
            analysis=analysis,
            design=design,
            may_delete=may_delete(self.caller, analysis),
            **self._describe_result(design),
            **kwargs,
        )

    def _describe_result(self, design: Design) -> dict[str, Any]:
        result = self.analysis.result
        if result is None:
            return {}
        kinds = {measure.name: measure.kind for measure in design.measures}
        breakdowns = [
            (
                each["segment"],
                each["value"],
                each["units"],
                pictures.make_plot(each["comparisons"], kinds).rows,
            )
            for each in result["breakdowns"][: pictures.MAX_BREAKDOWNS]
        ]
        events = readable_events(self.caller).filter(
            feature=self.flag.name, environment=self.analysis.environment_id, created_at__gte=design.until
        )
        decisions = events.exclude(type__startswith="analysis-").order_by("created_at")[:MAX_DECISIONS]
        return {
            "result": result,
            "is_wrong": any(check["state"] == "failed" for check in result["checks"]),
            "is_found": any(comparison["isSignificant"] for comparison in result["comparisons"]),
            "checks": pictures.list_checks(result),
            "plot": pictures.make_plot(result["comparisons"], kinds),
            "over_time": pictures.list_over_time(result),
            "shares": pictures.list_shares(result),
            "changes": pictures.list_changes(result),
            "breakdowns": breakdowns,
            "left_out": [(LEFT_OUT[name], rows) for name, rows in result["leftOut"].items() if rows],
            "decisions": make_event_rows(decisions, caller=self.caller),
        }


LEFT_OUT = {
    "noUnit": "without a unit",
    "outside": "later than the period",
    "unknown": "whose side is unknown",
    "random": "assigned at random on each call",
    "notDivided": "not split by the flag",
    "otherShares": "with a different rollout than most users",
}


class AnalysisProgress(OfAnalysis):
    """How far an analysis is. Reloads the page once it has ended."""

    template_name = "outcomes/analysis_progress.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.find()
        if self.analysis.has_ended:
            return HttpResponseClientRedirect(analysis_url(self.analysis))
        return self.render_to_response({"analysis": self.analysis, "flag": self.flag})


class AnalysisDownload(OfAnalysis):
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.find()
        rows = list_csv_rows(read_result(self.analysis))
        return make_csv_response(request, f"analysis-{self.analysis.pk}", CSV_COLUMNS, rows)


class DeleteAnalysis(OnFlagPage, ActionPage):
    """Stops an analysis, or deletes it with its result."""

    def act(self) -> str:
        flag = access_flag(self.caller, *self.place)
        self.success_url = list_url(flag.name)
        analysis = delete_analysis(flag, str(self.kwargs["analysis_id"]), caller=self.caller)
        return f"{'Deleted' if analysis.has_ended else 'Stopped'} the analysis {analysis.name}."
