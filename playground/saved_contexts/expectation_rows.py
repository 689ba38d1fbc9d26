"""Expectations as rows: in a list, of a saved context, and on the card of a flag's page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from flagadmin.core.errors import clip
from groups.access import Caller
from playground.saved_contexts.actions import may_save
from playground.saved_contexts.expectations import Checked, Expectation
from projects.console import flag_url
from projects.models import Flag

MAX_ON_CARD = 10
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


def make_expectation_row(expectation: Expectation, checked: Checked | None = None) -> ExpectationRow:
    """The row of an expectation; without a check, ``met``, ``actual`` and ``why`` are ""."""
    query: dict[str, Any] = {"environment": expectation.environment, "saved": expectation.saved.name}
    return ExpectationRow(
        id=expectation.saved.pk,
        name=expectation.saved.name,
        flag=expectation.flag,
        environment=expectation.environment,
        expected=expectation.words,
        actual=checked.actual if checked else "",
        met=("yes" if checked.met else NOT_MET) if checked else "",
        enforced=expectation.enforced_in or "",
        why=clip(checked.reason, 300) if checked else "",
        trace=f"{reverse('playground-flag', args=[expectation.flag])}?{urlencode(query)}",
    )


def describe_card(caller: Caller, flag: Flag, rows: Sequence[ExpectationRow]) -> dict[str, Any]:
    """The variables of the card's template: at most ``MAX_ON_CARD`` rows, unmet ones first."""
    about = {"flag": flag.name, "next": flag_url(flag.project_id, flag.name)}
    address = {"project_id": flag.project_id, "name": flag.name}
    return {
        "rows": sorted(rows, key=lambda row: (row.met != NOT_MET, row.environment, row.name))[:MAX_ON_CARD],
        "number": len(rows),
        "check_url": reverse("flag-expectations", kwargs=address),
        "all_url": f"{reverse('expectations')}?{urlencode({'q': flag.name})}",
        "new_url": f"{reverse('expectation-new')}?{urlencode(about)}" if may_save(caller) else "",
    }
