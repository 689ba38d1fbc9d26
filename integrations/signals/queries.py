"""Reads sources of signals, their rules, and what arrived."""

from django.db.models import Max, QuerySet

from flagadmin.core.db.lookups import get_or_404
from integrations.models import SignalRule, SignalSource


def find_source(source_id: int) -> SignalSource:
    """Raises NotFound."""
    return get_or_404(SignalSource.objects, "Source not found.", pk=source_id)


def find_rule(source: SignalSource, rule_id: int) -> SignalRule:
    """Raises NotFound."""
    return get_or_404(source.rules.select_related("source"), "Rule not found.", pk=rule_id)


def list_sources() -> QuerySet[SignalSource]:
    return SignalSource.objects.annotate(last_received=Max("signals__received_at"))
