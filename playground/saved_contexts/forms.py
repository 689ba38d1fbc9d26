"""The form of a saved context, with a row for each expectation, in plain inputs of the same names."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from django import forms
from django.core.exceptions import ValidationError as FormError
from django.template.loader import render_to_string

from flagadmin.core.errors import ValidationError
from playground.pages.query import decode_json
from playground.saved_contexts.expectations import answer_words, read_expected_answer
from playground.saved_contexts.rules import MAX_NAME_LENGTH, MAX_NOTE_LENGTH
from projects.models import Environment
from projects.strategies.variant_rules import PAYLOAD_TYPES

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
