"""/playground/assignments/: who had a flag at the time of something that happened; /playground/incidents/: which change
some users noticed, and others did not.

A form with a table, which may be a query instead of a file.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import orjson
from django import forms
from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from flagadmin.core.errors import Conflict
from flagadmin.core.http.responses import iso
from flagadmin.core.lists.pages import curl_for
from groups.access import Caller
from playground.outcomes.answer import DEFAULT_LAG, MAX_LAG
from playground.outcomes.history import MAX_FLAGS
from playground.outcomes.runs import MAX_USERS, create_assignments, create_incident
from playground.outcomes.sql import list_queries
from playground.outcomes.table import MAX_ROWS
from playground.user_runs.runs import MAX_RUNS
from playground.user_runs.table_form import TablePage, UsersForm, list_runs_for_page
from playground.user_runs.worker import KEPT


class QueryForm(forms.Form):
    """Has the fields ``file`` and ``query``, of which one must be given."""

    query = forms.ChoiceField(
        required=False, label="Or a query", help_text="Of the company's database. Its rows are the table."
    )

    queries_problem = ""
    """Why there are none: files can still be sent."""

    def offer_queries(self, caller: Caller) -> None:
        """Those that the caller may run. Without any, there is no such field."""
        names: list[str] = []
        try:
            names = list_queries(caller)
        except Conflict as error:
            self.queries_problem = error.message
        field = self.fields["query"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", "none"), *((name, name) for name in names)]
        if names:
            self.fields["file"].required = False
        else:
            del self.fields["query"]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if "query" in self.fields and bool(values.get("file")) == bool(values.get("query")):
            self.add_error("file", "Choose a table or a query.")
        return values


API = "/api/admin/playground/assignments"
EXAMPLE = "userId,country,time,amount\n42,NO,2026-11-21T14:05:00Z,12.50\n7,DE,2026-11-21T14:06:30Z,8.00"


class AssignmentsForm(QueryForm, UsersForm):
    flag = forms.CharField(
        label="Flags",
        help_text=f"Names, separated by commas; at most {MAX_FLAGS}.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    lag = forms.IntegerField(
        label="Seconds until applications notice a change",
        help_text="How often your SDKs ask. Rows within this time of a change are in between.",
        initial=DEFAULT_LAG,
        min_value=0,
        max_value=MAX_LAG,
    )
    field_order = ("file", "query", "flag", "environment", "lag")

    def __init__(self, *args: Any, caller: Caller, **kwargs: Any) -> None:
        super().__init__(*args, may_keep=False, **kwargs)
        self.offer_queries(caller)
        file = self.fields["file"]
        file.label, file.widget.attrs["accept"] = "Table", ".csv,.ndjson,.jsonl,.gz,.parquet,text/csv"
        file.help_text = (
            "CSV with a header or lines of JSON, also with gzip, or Parquet. A column named time, and fields."
        )

    def clean_flag(self) -> list[str]:
        names = [name for each in self.cleaned_data["flag"].split(",") if (name := each.strip())]
        if not names:
            raise forms.ValidationError("Name a flag.")
        return names


class AssignmentsPage(TablePage):
    template_name = "outcomes/assignments.html"
    title = "Who had it"
    form_class = AssignmentsForm

    def get_form_kwargs(self) -> dict[str, Any]:
        given = {"environments": self.offered.environments, "caller": self.caller}
        return super().get_form_kwargs() | given

    def get_initial(self) -> dict[str, Any]:
        return super().get_initial() | {"lag": DEFAULT_LAG}

    def submit(self, form: AssignmentsForm) -> str:
        values = form.cleaned_data
        file = values["file"]
        run = create_assignments(
            file.read() if file else b"",
            caller=self.caller,
            environment=values["environment"],
            flags=values["flag"],
            lag=values["lag"],
            file_name=file.name or "" if file else "",
            at_once=True,
            query=values.get("query", ""),
        )
        return reverse("user-run", args=[run.pk])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            own=list_runs_for_page(self.caller),
            most_rows=MAX_ROWS,
            most_runs=MAX_RUNS,
            days=KEPT.days,
            limit=settings.IMPORT_BODY_LIMIT // 1_000_000,
            example=EXAMPLE,
            **kwargs,
        )

    def get_curl(self) -> str:
        flag = self.request.GET.get("flag") or "NAME"
        url = f"{API}?environment={self.offered.default_environment}&flag={flag}"
        return f"{curl_for(self.request, 'POST', url)} -H 'Content-Type: text/csv' --data-binary @orders.csv"


class TimeInput(forms.DateTimeInput):
    """In UTC. The page's script shows it in the reader's zone."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__({"step": "1", "data-utc": ""}, "%Y-%m-%dT%H:%M:%S")


class IncidentForm(forms.Form):
    ids = forms.CharField(
        required=False,
        label="Affected users",
        help_text="Their userId, one per line.",
        widget=forms.Textarea({"rows": 5, "spellcheck": "false"}),
    )
    file = forms.FileField(
        required=False,
        label="Or a table of them",
        help_text="CSV with a header, or lines of JSON: userId, country, … or properties.NAME.",
        widget=forms.ClearableFileInput({"accept": ".csv,.ndjson,.jsonl,.gz,text/csv", "class": "drop"}),
    )
    others = forms.FileField(
        required=False,
        label="Users who are not affected",
        help_text="A table with the same columns. Without it, users of your last file stand in, else generated ones.",
        widget=forms.ClearableFileInput({"accept": ".csv,.ndjson,.jsonl,.gz,text/csv", "class": "drop"}),
    )
    environment = forms.ChoiceField()
    since = forms.DateTimeField(label="From", widget=TimeInput)
    until = forms.DateTimeField(label="To", widget=TimeInput)

    def __init__(self, *args: Any, environments: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["environment"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(name, name) for name in environments]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if not values.get("ids") and not values.get("file"):
            self.add_error("ids", "Enter the ids of affected users, or choose a table.")
        return values

    @property
    def affected(self) -> bytes:
        values = self.cleaned_data
        if values["file"]:
            return bytes(values["file"].read())
        ids = [text for line in values["ids"].splitlines() if (text := line.strip().strip(",;\"'"))]
        return b"\n".join(orjson.dumps({"userId": text}) for text in ids)


class IncidentsPage(TablePage):
    template_name = "outcomes/incidents.html"
    title = "Which change did this"
    form_class = IncidentForm
    problem_fields = {"from": "since", "to": "until"}

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"environments": self.offered.environments}

    def get_initial(self) -> dict[str, Any]:
        now = timezone.now().replace(microsecond=0)
        times: dict[str, Any] = {"since": now - timedelta(hours=24), "until": now}
        asked = {name: self.request.GET[name] for name in times if name in self.request.GET}
        return super().get_initial() | times | asked

    def submit(self, form: IncidentForm) -> str:
        values = form.cleaned_data
        others = values["others"].read() if values["others"] else None
        run = create_incident(
            form.affected,
            others,
            caller=self.caller,
            environment=values["environment"],
            since=values["since"],
            until=values["until"],
            file_name=values["file"].name if values["file"] else "",
        )
        return reverse("user-run", args=[run.pk])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            own=list_runs_for_page(self.caller),
            most_users=MAX_USERS,
            most_runs=MAX_RUNS,
            days=KEPT.days,
            **kwargs,
        )

    def get_curl(self) -> str:
        now = timezone.now().replace(microsecond=0)
        body = {
            "environment": self.offered.default_environment,
            "from": iso(now - timedelta(hours=24)),
            "to": iso(now),
            "affected": "userId\n42\n7\n",
        }
        return curl_for(self.request, "POST", "/api/admin/playground/incidents", body)
