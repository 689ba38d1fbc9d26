"""Reads sources of signals, their rules and received signals, and makes their documents."""

from collections.abc import Iterable

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


def read_rules(source: SignalSource, caller: Caller) -> QuerySet[SignalRule]:
    """The source's rules of projects that the caller may read."""
    return source.rules.filter(caller.match_readable("project"))


def find_rule(source: SignalSource, rule_id: int, caller: Caller) -> SignalRule:
    """Raises NotFound, also for a rule of a project that the caller may not read."""
    return get_or_404(read_rules(source, caller).select_related("source"), "Rule not found.", pk=rule_id)


def list_rules_to_suspend(source: SignalSource, caller: Caller) -> list[SignalRule]:
    """The rules of other authors, which the caller could trigger with a new token. Admins have these rights anyway."""
    if caller.is_admin:
        return []
    rules = source.rules.filter(suspended_at=None)
    return list(rules.filter(author=None) | rules.exclude(author=caller.user))


def list_suspended_rules(caller: Caller) -> QuerySet[SignalRule]:
    """The suspended enabled rules of readable projects that the caller may save or has saved."""
    readable = SignalRule.objects.filter(caller.match_readable("project"), enabled=True)
    rules = readable.exclude(suspended_at=None).select_related("source")
    return rules if caller.can(Permission.UPDATE_ADDON) else rules.filter(author=caller.id or 0)


def list_sources() -> QuerySet[SignalSource]:
    return SignalSource.objects.annotate(last_received=Max("signals__received_at"))


def make_source_document(source: SignalSource, caller: Caller) -> Document:
    """With the rules of projects that the caller may read."""
    return {
        "id": source.pk,
        "name": source.name,
        "kind": source.kind,
        "createdAt": iso(source.created_at),
        "rules": [make_rule_document(rule) for rule in source.rules.all() if caller.can_read(rule.project)],
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


def select_visible_results(source: SignalSource, signals: Iterable[Signal], caller: Caller) -> list[Signal]:
    """The signals with the results of rules of projects that the caller may read.

    Results from before 1.4 do not name their project: only those of a readable rule that is still there are visible.
    """
    signals = list(signals)
    if not caller.reads_all_projects:
        known = set(read_rules(source, caller).values_list("name", "flag"))
        for signal in signals:
            signal.results = [
                result
                for result in signal.results
                if (
                    caller.can_read(result["project"])
                    if "project" in result
                    else (result["rule"], result["flag"]) in known
                )
            ]
    return signals


def make_signal_document(signal: Signal) -> Document:
    return {
        "id": signal.pk,
        "receivedAt": iso(signal.received_at),
        "body": signal.body,
        "results": signal.results,
    }
