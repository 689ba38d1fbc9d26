"""/playground/expectations/: what saved contexts expect of flags, and what the flags give them now."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from flagadmin.core.lists.pages import Column, Filter
from flagadmin.core.wording import clip
from groups.console import ListPage
from playground.saved_contexts.actions import may_save
from playground.saved_contexts.expectations import Checked, check_expectations, list_expectations
from projects.models import Environment

NOT_MET = "no"


@dataclass(frozen=True, slots=True)
class ExpectationRow:
    id: int
    name: str
    flag: str
    environment: str
    expected: str
    actual: str
    met: str
    enforced: str
    why: str
    trace: str


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
        rows = [make_expectation_row(expectation) for expectation in check_expectations(self.caller, chosen)]
        return [row for row in rows if values["met"] in ("", row.met)]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(may_create=may_save(self.caller), **kwargs)


def make_expectation_row(checked: Checked) -> ExpectationRow:
    expectation = checked.expectation
    query: dict[str, Any] = {"environment": expectation.environment, "saved": expectation.saved.name}
    return ExpectationRow(
        id=expectation.saved.pk,
        name=expectation.saved.name,
        flag=expectation.flag,
        environment=expectation.environment,
        expected=expectation.words,
        actual=checked.actual,
        met="yes" if checked.met else NOT_MET,
        enforced=expectation.enforced_in or "",
        why=clip(checked.reason, 300),
        trace=f"{reverse('playground-flag', args=[expectation.flag])}?{urlencode(query)}",
    )
