"""``{% load expectations %}{% expectations_of flag %}`` for the page of a flag."""

from collections.abc import Mapping
from typing import Any

from django import template

from playground.models import SavedContext
from playground.saved_contexts.expectation_rows import describe_card, make_expectation_row
from playground.saved_contexts.expectations import list_expectations
from projects.models import Flag

register = template.Library()


@register.inclusion_tag("saved_contexts/flag_expectations.html", takes_context=True)
def expectations_of(context: Mapping[str, Any], flag: Flag) -> dict[str, Any]:
    """The card with empty rows that a check fills in, so that the page does not shift. At most three queries."""
    caller = context["caller"]
    saved = SavedContext.objects.readable_by(caller).filter(expectations__contains=[{"flag": flag.name}])
    expected = list_expectations(caller, contexts=list(saved), flags={flag.name})
    rows = [make_expectation_row(expectation) for expectation in expected]
    return describe_card(caller, flag, rows) | {"unchecked": bool(rows)}
