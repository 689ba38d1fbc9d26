"""Forms of sources of signals and their rules."""

from typing import Any

import orjson
from django import forms

from integrations.models import SignalRule, SignalSource

_CODE = {"spellcheck": "false", "autocomplete": "off"}
MAX_EXAMPLE = 100_000  # characters


class SourceForm(forms.Form):
    name = forms.CharField(max_length=100, help_text="Part of the URL: lower-case letters, digits, - and _.")
    kind = forms.ChoiceField(label="It sends", choices=SignalSource.Kind.choices)


class MatchField(forms.CharField):
    """A condition a line: ``labels.severity = critical``."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=10_000, widget=forms.Textarea({**_CODE, "rows": 4}), **kwargs)

    def clean(self, value: Any) -> dict[str, str]:
        lines = [line for line in super().clean(value).splitlines() if line.strip()]
        pairs = [line.partition("=") for line in lines]
        if not all(equals and text.strip() for _, equals, text in pairs):
            raise forms.ValidationError("Each line must be a path, = and a value: labels.severity = critical")
        return {path.strip(): text.strip() for path, _, text in pairs}


class RuleForm(forms.Form):
    name = forms.CharField(max_length=100)
    match = MatchField(
        label="A signal must have",
        help_text="A path and a value in each line: labels.severity = critical. * is any value.",
    )
    project = forms.CharField(max_length=255, widget=forms.TextInput({**_CODE, "list": "projects"}))
    flag = forms.CharField(max_length=255, widget=forms.TextInput(_CODE))
    environment = forms.CharField(max_length=255, widget=forms.TextInput({**_CODE, "list": "environments"}))
    then = forms.ChoiceField(label="Then", choices=SignalRule.Action.choices)
    enabled = forms.BooleanField(required=False, help_text="Try the rule with an example first.")


class TrialForm(forms.Form):
    example = forms.CharField(
        max_length=MAX_EXAMPLE,
        help_text="JSON, as the source sends it.",
        widget=forms.Textarea({**_CODE, "rows": 14}),
    )

    def clean_example(self) -> dict[str, Any]:
        try:
            body = orjson.loads(self.cleaned_data["example"])
        except orjson.JSONDecodeError as error:
            raise forms.ValidationError(f"Invalid JSON: {error}.") from None
        if not isinstance(body, dict):
            raise forms.ValidationError("It must be a JSON object.")
        return body


def write_match(match: dict[str, str]) -> str:
    return "\n".join(f"{path} = {value}" for path, value in match.items())
