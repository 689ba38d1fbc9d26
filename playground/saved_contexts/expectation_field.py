"""The form field of a saved context's expectations: a row for each, in plain inputs of the same names."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from django import forms
from django.template.loader import render_to_string

from playground.saved_contexts.expectations import answer_words, read_expected_answer
from projects.strategies.variant_rules import PAYLOAD_TYPES

PARTS = ("flag", "environment", "enabled", "variant", "payload-type", "payload")
SPARE = 2  # empty rows


class GivenExpectation(dict[str, Any]):
    """An expectation, in words when it is shown as a text."""

    def __str__(self) -> str:
        return f"{self['flag']} is {answer_words(read_expected_answer(self))} in {self['environment']}"


def make_expectation_rows(expectations: Iterable[Mapping[str, Any]]) -> list[GivenExpectation]:
    return [GivenExpectation(expectation) for expectation in expectations]


class ExpectationsInput(forms.Widget):
    """Rows of a flag's name, an environment, on or off, a variant, and a payload. One without a flag does not count.

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
    """A text without a type is expected as a string."""
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
