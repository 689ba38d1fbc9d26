"""The form of a saved context."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError as FormError

from flagadmin.core.errors import ValidationError
from playground.pages.query import decode_json
from playground.saved_contexts.expectation_field import ExpectationsField, ExpectationsInput
from playground.saved_contexts.rules import MAX_NAME_LENGTH, MAX_NOTE_LENGTH
from projects.models import Environment


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
