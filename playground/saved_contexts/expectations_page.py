"""Pages of expectations: their list, the card on a flag's page, and a new one.

/playground/expectations/new takes values from its URL: ``?flag=`` and the like.
"""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse, reverse_lazy

from flagadmin.core.lists.pages import MAX_OPTIONS, Column, Filter
from groups.console import ConsolePage, FormPage, ListPage, read_next_page
from playground.models import SavedContext
from playground.saved_contexts import actions
from playground.saved_contexts.actions import may_save
from playground.saved_contexts.expectation_rows import (
    NOT_MET,
    ExpectationRow,
    describe_card,
    make_expectation_row,
)
from playground.saved_contexts.expectations import check_expectations, list_expectations
from playground.saved_contexts.forms import GivenExpectation
from projects.access import access_flag
from projects.models import Environment


class ExpectationsPage(ListPage):
    template_name = "saved_contexts/expectations.html"
    title = "Expectations"
    csv_name = "expectations"
    default_sort = "met"
    columns = (
        Column("met", "Met", by=("met", "environment", "flag", "name")),
        Column("flag", "Flag", by=("flag",)),
        Column("environment", "Environment", by=("environment",)),
        Column("name", "Saved context", by=("name",)),
        Column("expected", "Expected"),
        Column("actual", "Now"),
        Column("enforced", "Enforced by", by=("enforced",)),
        Column("why", "Why"),
    )
    api_call = "POST /api/admin/playground/check-expectations"
    api_example: Any = {}

    def get_filters(self) -> Sequence[Filter]:
        names = Environment.objects.values_list("name", flat=True)
        return (
            Filter("q", "Flag or saved context"),
            Filter("environment", "Environment", [(name, name) for name in names]),
            Filter("met", "Met", [(NOT_MET, "not met"), ("yes", "met")]),
        )

    def get_rows(self, values: dict[str, str]) -> list[ExpectationRow]:
        environment, text = values["environment"], values["q"].casefold()
        expected = list_expectations(self.caller, environments=[environment] if environment else None)
        chosen = [
            expectation
            for expectation in expected
            if text in f"{expectation.flag}\n{expectation.saved.name}".casefold()
        ]
        rows = [
            make_expectation_row(checked.expectation, checked)
            for checked in check_expectations(self.caller, chosen)
        ]
        return [row for row in rows if values["met"] in ("", row.met)]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(may_create=may_save(self.caller), **kwargs)


class FlagExpectationsPart(ConsolePage):
    """Loaded by the flag's page once its card is visible: checking takes longer than the page."""

    template_name = "saved_contexts/flag_expectations.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        flag = access_flag(self.caller, kwargs["project_id"], kwargs["name"])
        expected = list_expectations(self.caller, flags={flag.name})
        rows = [
            make_expectation_row(checked.expectation, checked)
            for checked in check_expectations(self.caller, expected)
        ]
        return self.render_to_response(describe_card(self.caller, flag, rows))


class ExpectationForm(forms.Form):
    saved_context = forms.TypedChoiceField(coerce=int, label="Saved context")
    flag = forms.CharField(widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}))
    environment = forms.ChoiceField()
    enabled = forms.ChoiceField(label="Should be", choices=[("on", "on"), ("off", "off")])
    variant = forms.CharField(required=False, help_text="Any variant by default.")

    def __init__(self, *args: Any, contexts: Sequence[tuple[int, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["saved_context"].choices = list(contexts)  # type: ignore[attr-defined]
        names = Environment.objects.names()
        self.fields["environment"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]

    def expectation(self) -> GivenExpectation:
        data = self.cleaned_data
        return GivenExpectation(
            flag=data["flag"].strip(),
            environment=data["environment"],
            enabled=data["enabled"] == "on",
            variant=data["variant"].strip() or None,
        )


class NewExpectationPage(FormPage):
    template_name = "console/form.html"
    title = "New expectation"
    form_class = ExpectationForm
    button = "Add expectation"
    parents = (("Expectations", reverse_lazy("expectations")),)
    api_call = "POST /api/admin/playground/check-expectations"
    api_example: Any = {}

    def find(self) -> None:
        readable = SavedContext.objects.readable_by(self.caller).order_by("name")
        self.contexts = [
            (saved.pk, saved.name) for saved in readable if actions.may_change(self.caller, saved.project_id)
        ][:MAX_OPTIONS]
        if not self.contexts and not actions.may_save(self.caller):
            actions.check_may_change(self.caller, None)

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"contexts": self.contexts}

    def get_initial(self) -> dict[str, Any]:
        in_url = {
            name: self.request.GET[name] for name in ExpectationForm.base_fields if name in self.request.GET
        }
        production = Environment.objects.production().values_list("name", flat=True).first()
        return {"environment": production} | in_url

    def submit(self, form: ExpectationForm) -> str:
        expectation = form.expectation()
        context_id = form.cleaned_data["saved_context"]
        saved = actions.add_expectation(context_id, expectation, caller=self.caller)
        return self.done(f"{saved.name}: {expectation}.", self._back())

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        lead = "" if self.contexts else "Save a context in the playground first."
        return super().get_context_data(cancel=self._back(), lead=lead, **kwargs)

    def _back(self) -> str:
        return read_next_page(self.request) or reverse("expectations")
