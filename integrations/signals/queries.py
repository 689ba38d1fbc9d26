"""Reads sources of signals, their rules and received signals, and makes their documents."""

from django.db.models import Max, QuerySet

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.document import Document
from flagadmin.core.errors import NotFound
from flagadmin.core.http.responses import iso
from groups.access import Caller, Permission
from integrations.models import Signal, SignalRule, SignalSource

READERS = (Permission.CREATE_ADDON, Permission.UPDATE_ADDON, Permission.DELETE_ADDON)


def find_source(source_id: int) -> SignalSource:
    """Raises NotFound."""
    return get_or_404(SignalSource.objects, "Source not found.", pk=source_id)


def find_visible_source(caller: Caller, source_id: int) -> SignalSource:
    """Raises NotFound, also for callers who may not see sources, so that they do not learn which exist."""
    if not any(map(caller.can, READERS)):
        raise NotFound("Source not found.")
    return find_source(source_id)


def find_rule(source: SignalSource, rule_id: int) -> SignalRule:
    """Raises NotFound."""
    return get_or_404(source.rules.select_related("source"), "Rule not found.", pk=rule_id)


def list_rules_to_suspend(source: SignalSource, caller: Caller) -> list[SignalRule]:
    """The rules of other authors, which the caller could trigger with a new token. Admins have these rights anyway."""
    if caller.is_admin:
        return []
    rules = source.rules.filter(suspended_at=None)
    return list(rules.filter(author=None) | rules.exclude(author=caller.user))


def list_suspended_rules(caller: Caller) -> QuerySet[SignalRule]:
    """The suspended enabled rules that the caller may save or has saved."""
    rules = SignalRule.objects.filter(enabled=True).exclude(suspended_at=None).select_related("source")
    return rules if caller.can(Permission.UPDATE_ADDON) else rules.filter(author=caller.id or 0)


def list_sources() -> QuerySet[SignalSource]:
    return SignalSource.objects.annotate(last_received=Max("signals__received_at"))


def make_source_document(source: SignalSource) -> Document:
    return {
        "id": source.pk,
        "name": source.name,
        "kind": source.kind,
        "createdAt": iso(source.created_at),
        "rules": [make_rule_document(rule) for rule in source.rules.all()],
    }


def make_rule_document(rule: SignalRule) -> Document:
    return {
        "id": rule.pk,
        "name": rule.name,
        "match": rule.match,
        "project": rule.project,
        "flag": rule.flag,
        "environment": rule.environment,
        "then": rule.then,
        "enabled": rule.enabled,
        "suspended": rule.suspended_at and {"since": iso(rule.suspended_at), "by": rule.suspended_by},
    }


def make_signal_document(signal: Signal) -> Document:
    return {
        "id": signal.pk,
        "receivedAt": iso(signal.received_at),
        "body": signal.body,
        "results": signal.results,
    }
