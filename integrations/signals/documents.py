"""The JSON documents of sources of signals, rules, and what arrived."""

from flagadmin.core.document import Document
from flagadmin.core.http.timestamps import iso
from integrations.models import Signal, SignalRule, SignalSource


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
    }


def make_signal_document(signal: Signal) -> Document:
    return {
        "id": signal.pk,
        "receivedAt": iso(signal.received_at),
        "body": signal.body,
        "results": signal.results,
    }
