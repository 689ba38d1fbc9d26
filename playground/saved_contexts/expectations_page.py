"""Pages of expectations: their list, the card on a flag's page, and a new one.

/playground/expectations/new takes values from its URL: ``?flag=`` and the like.

The form of a saved context, with a row for each expectation, in plain inputs of the same names.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from django import forms
from django.core.exceptions import ValidationError as FormError
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.urls import reverse, reverse_lazy

from flagadmin.core.errors import ValidationError
from flagadmin.core.lists.pages import MAX_OPTIONS, Column, Filter
from groups.console import ConsolePage, FormPage, ListPage, read_next_page
from playground.models import SavedContext
from playground.pages.query import decode_json
from playground.saved_contexts import actions
from playground.saved_contexts.actions import MAX_NAME_LENGTH, MAX_NOTE_LENGTH, may_save
from playground.saved_contexts.expectation_rows import (
    NOT_MET,
    ExpectationRow,
    describe_card,
    make_expectation_row,
)
from playground.saved_contexts.expectations import (
    answer_words,
    check_expectations,
    list_expectations,
    read_expected_answer,
)
from projects.access import access_flag
from projects.models import Environment
from projects.strategies.rules import PAYLOAD_TYPES

PARTS = ("flag", "environment", "enabled", "variant", "payload-type", "payload")
SPARE = 2  # empty rows


class GivenExpectation(dict[str, Any]):
    """An expectation whose text form is a sentence."""

    def __str__(self) -> str:
        return f"{self['flag']} is {answer_words(read_expected_answer(self))} in {self['environment']}"


def make_expectation_rows(expectations: Iterable[Mapping[str, Any]]) -> list[GivenExpectation]:
    return [GivenExpectation(expectation) for expectation in expectations]


class ExpectationsInput(forms.Widget):
    """Rows of a flag's name, an environment, on or off, a variant, and a payload. Ignores rows without a flag.

    ``flags`` are offered; others can be typed.
    """

    use_fieldset = True

    def __init__(self, environments: Sequence[str], flags: Sequence[str]) -> None:
        super().__init__()
        self.environments, self.flags = environments, flags

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[GivenExpectation]:
        columns = [data.getlist(f"{name}-{part}") for part in PARTS]
        return [
            GivenExpectation(
                flag=flag.strip(),
                environment=environment,
                enabled=enabled == "on",
                variant=variant.strip() or None,
                **_read_payload(kind, text),
            )
            for flag, environment, enabled, variant, kind, text in zip_longest(*columns, fillvalue="")
            if flag.strip()
        ]

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return f"{name}-flag" not in data

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> Any:
        rows = list(value or ())
        named = {expectation["environment"] for expectation in rows} - set(self.environments)
        context = {
            "name": name,
            "flags": self.flags,
            "rows": [*rows, *[None] * SPARE],
            "environments": [*self.environments, *sorted(named)],
            "payload_types": PAYLOAD_TYPES,
        }
        return render_to_string("saved_contexts/expectation_rows.html", context)


def _read_payload(kind: str, text: str) -> dict[str, Any]:
    """A text without a type counts as a string."""
    if not (kind or text):
        return {}
    return {"payload": {"type": kind or "string", "value": text.replace("\r\n", "\n")}}


class ExpectationsField(forms.Field):
    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, **options)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return list(initial or ()) != list(data or ())

    def clean(self, value: Any) -> list[GivenExpectation]:
        return list(value or ())


class SavedContextForm(forms.Form):
    name = forms.CharField(max_length=MAX_NAME_LENGTH)
    note = forms.CharField(
        max_length=MAX_NOTE_LENGTH,
        required=False,
        help_text='For example: "Norwegian pro user, pays by invoice"',
    )
    context = forms.CharField(
        required=False,
        strip=False,
        label="Context as JSON",
        help_text="Same format as the playground; custom fields go in properties.",
        widget=forms.Textarea(attrs={"rows": 10, "spellcheck": "false", "class": "mono"}),
    )

    expectations = ExpectationsField(
        help_text="Checked before every change.",
    )

    def __init__(self, *args: Any, flags: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["expectations"].widget = ExpectationsInput(Environment.objects.names(), flags)

    def clean_context(self) -> Any:
        try:
            return decode_json(self.cleaned_data["context"])
        except ValidationError as error:
            raise FormError(error.details[0].message) from None


class NewSavedContextForm(SavedContextForm):
    project_id = forms.ChoiceField(required=False, label="Scope")
    field_order = ["name", "note", "project_id"]

    def __init__(self, *args: Any, projects: Sequence[str], everywhere: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        options = [("", "All projects")] if everywhere else []
        self.fields["project_id"].choices = [*options, *((name, name) for name in projects)]  # type: ignore[attr-defined]

    def clean_project_id(self) -> str | None:
        return self.cleaned_data["project_id"] or None


class ExpectationsPage(ListPage):
    title = "Expectations"
    lead = "What each saved context should get, checked against the current flags."
    noun = "expectation,expectations"
    new = ("expectation-new", "New expectation")
    none_yet = "No expectations yet. A saved context can say which flags it expects to be on or off."
    begin = ("saved-contexts", "Saved contexts")
    default_sort = "met"
    columns = (
        Column(
            "met",
            "Met",
            by=("met", "environment", "flag", "name"),
            pill='{% if row.met == "yes" %}on{% else %}warn{% endif %}',
            cell='{% if row.met == "yes" %}Met{% else %}Not met{% endif %}',
        ),
        Column("flag", "Flag", by=("flag",), link="{{ row.trace }}", heads_row=True),
        Column("environment", "Environment", by=("environment",)),
        Column("name", "Saved context", by=("name",), link='{% url "saved-context" row.id %}'),
        Column("expected", "Expected", shown="capfirst"),
        Column("actual", "Now", shown="capfirst"),
        Column(
            "enforced", "Enforced by", by=("enforced",), cell='{% include "saved_contexts/enforced.html" %}'
        ),
        Column("why", "Why", unlabeled=True),
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

    def may_create(self) -> bool:
        return may_save(self.caller)


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
