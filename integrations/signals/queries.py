"""Reads sources of signals, their rules, and what arrived."""

from django.db.models import Max, QuerySet

from flagadmin.core.errors import NotFound
from integrations.models import SignalRule, SignalSource


def find_source(source_id: int) -> SignalSource:
    """Raises NotFound."""
    source = SignalSource.objects.filter(pk=source_id).first()
    if source is None:
        raise NotFound("Source not found.")
    return source


def find_rule(source: SignalSource, rule_id: int) -> SignalRule:
    """Raises NotFound."""
    rule = source.rules.select_related("source").filter(pk=rule_id).first()
    if rule is None:
        raise NotFound("Rule not found.")
    return rule


def list_sources() -> QuerySet[SignalSource]:
    return SignalSource.objects.annotate(last_received=Max("signals__received_at"))
