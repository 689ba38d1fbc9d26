"""A form with a table, which may be a query instead of a file."""

from collections.abc import Sequence
from typing import Any

from django import forms


class QueryForm(forms.Form):
    """Has the fields ``file`` and ``query``, of which one must be given."""

    query = forms.ChoiceField(
        required=False, label="Or a query", help_text="Of the company's database. Its rows are the table."
    )

    def offer_queries(self, names: Sequence[str]) -> None:
        """Without any, there is no such field."""
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
