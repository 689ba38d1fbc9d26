"""A form with a table, which may be a query instead of a file."""

from typing import Any

from django import forms

from flagadmin.core.errors import Conflict
from groups.access import Caller
from playground.outcomes.sql import list_queries


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
