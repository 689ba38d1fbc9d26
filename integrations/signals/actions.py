"""Creates, changes and deletes sources of signals and their rules.

Rules for signal sources and their rules.

Reads sources of signals, their rules and received signals, and makes their documents.
"""

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.db.models import Max, QuerySet
from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import NotFound, Problem, ValidationError, check_problems
from flagadmin.core.http.responses import iso
from groups.access import Caller, Permission
from groups.tokens import hash_secret
from integrations.models import Signal, SignalDone, SignalRule, SignalSource
from projects.access import access_flag
from projects.models import ProjectEnvironment

_ASSIGNED = ("name", "match", "project", "flag", "environment", "then", "enabled")
_ACT = ("project", "flag", "environment", "then")


@transactional
def create_source(name: str, kind: str, *, caller: Caller) -> tuple[SignalSource, str]:
    """Creates a source and returns it with its token, which cannot be read later. Raises NoAccess, ValidationError."""
    caller.check(Permission.CREATE_ADDON)
    check_problems(find_source_problems(name))
    token = _make_token()
    source = SignalSource(name=name, kind=kind)
    _assign_token(source, token, caller)
    source.save()
    source.refresh_from_db()  # the database sets the time
    _record(EventType.SIGNAL_SOURCE_CREATED, source, caller, after=make_source_document(source, caller))
    return source, token


@transactional
def replace_token(source_id: int, *, caller: Caller) -> tuple[str, list[SignalRule]]:
    """Returns the new token, and the suspended rules that the caller may read. The previous token stops working now.

    A rule acts with its author's rights, which the caller could use with the new token. Raises NotFound, NoAccess.
    """
    source = access_for_update(caller, source_id, Permission.UPDATE_ADDON)
    token = _make_token()
    _assign_token(source, token, caller)
    source.save(update_fields=["token_hash", "token_by", "token_by_name"])
    suspended = list_rules_to_suspend(source, caller)
    now = timezone.now()
    for rule in suspended:
        rule.suspended_at, rule.suspended_by = now, caller.name
        rule.save(update_fields=["suspended_at", "suspended_by"])
        document = make_rule_document(rule)
        # Without the id: nobody has saved the rule.
        _record_rule(rule, caller, after={key: document[key] for key in ("name", "project", "suspended")})
    _record(EventType.SIGNAL_SOURCE_UPDATED, source, caller, after={"token": "replaced"})
    return token, [rule for rule in suspended if caller.can_read(rule.project)]


@transactional
def delete_source(source_id: int, *, expected: Expected = None, caller: Caller) -> None:
    """Deletes a source with all its rules and its received signals. Raises NotFound, NoAccess, EditConflict."""
    source = access_for_update(caller, source_id, Permission.DELETE_ADDON)
    check_expected(expected, make_source_document(source, caller))
    before = make_source_document(
        source, Caller.system()
    )  # readers of the event get the rules that they may read
    _record(EventType.SIGNAL_SOURCE_DELETED, source, caller, before=before)
    source.delete()


@transactional
def save_rule(
    source_id: int,
    values: Mapping[str, Any],
    *,
    rule_id: int | None = None,
    expected: Expected = None,
    caller: Caller,
) -> SignalRule:
    """Creates or changes a rule, which acts with the rights of the caller from now on.

    Raises NotFound, NoAccess, EditConflict, ValidationError.
    """
    source = access_for_update(caller, source_id, Permission.UPDATE_ADDON)
    rule = find_rule(source, rule_id, caller) if rule_id is not None else None
    before = make_rule_document(rule) if rule else None
    check_expected(expected, before)
    check_problems(find_rule_problems(source, values, instead=rule))
    _check_place(values, caller)
    rule = rule or SignalRule(source=source)
    if rule.pk and any(getattr(rule, name) != values[name] for name in _ACT):
        SignalDone.objects.filter(rule=rule).delete()  # the changed rule has not acted yet
    for name in _ASSIGNED:
        setattr(rule, name, values[name])
    rule.author = caller.user
    rule.suspended_at, rule.suspended_by = None, ""
    rule.save()
    _record_rule(rule, caller, before=before, after=make_rule_document(rule))
    return rule


@transactional
def delete_rule(source_id: int, rule_id: int, *, expected: Expected = None, caller: Caller) -> None:
    """Raises NotFound, NoAccess, EditConflict."""
    source = access_for_update(caller, source_id, Permission.UPDATE_ADDON)
    rule = find_rule(source, rule_id, caller)
    before = make_rule_document(rule)
    check_expected(expected, before)
    _record_rule(rule, caller, before=before)
    rule.delete()


def access_for_update(caller: Caller, source_id: int, permission: Permission) -> SignalSource:
    """The source, locked. Raises NotFound, NoAccess."""
    find_source(source_id)
    caller.check(permission)
    return get_or_404(SignalSource.objects.select_for_update(), "Source not found.", pk=source_id)


def _check_place(values: Mapping[str, Any], caller: Caller) -> None:
    """Checks that the flag exists and that the caller may make the rule's change. Raises NoAccess, ValidationError."""
    project, environment = values["project"], values["environment"]
    try:
        access_flag(caller, project, values["flag"], archived=False)
    except NotFound as error:
        raise ValidationError.at("flag", error.message) from None
    places = ProjectEnvironment.objects.filter(project=project).values_list("environment_id", flat=True)
    if environment not in places:
        raise ValidationError.at(
            "environment", f"must be {' or '.join(sorted(places))}, not {environment[:100]}"
        )
    if caller.user is None:
        raise ValidationError.at(
            "enabled", "A rule acts with the rights of a person or service account: use a token of one."
        )
    pauses = values["then"] == SignalRule.Action.PAUSE_PLAN
    needed = Permission.UPDATE_FEATURE_STRATEGY if pauses else Permission.UPDATE_FEATURE_ENVIRONMENT
    caller.check(needed, project=project, environment=environment)


def _assign_token(source: SignalSource, token: str, caller: Caller) -> None:
    source.token_hash = hash_secret(token)
    source.token_by, source.token_by_name = caller.user, caller.name if caller.user else ""


def _make_token() -> str:
    return f"signal_{secrets.token_urlsafe(32)}"


def _record(
    kind: EventType,
    source: SignalSource,
    caller: Caller,
    *,
    before: Document | None = None,
    after: Document | None = None,
) -> None:
    record(Event(type=kind, subject=source.name, before=before, after=after), actor=caller)


def _record_rule(
    rule: SignalRule, caller: Caller, *, before: Document | None = None, after: Document | None = None
) -> None:
    """Records an event of the rule's project, whose readers may see it."""
    kind, subject = EventType.SIGNAL_SOURCE_UPDATED, rule.source.name
    record(Event(type=kind, project=rule.project, subject=subject, before=before, after=after), actor=caller)


def list_users(kind: str, names: Any, caller: Caller) -> Iterable[str]:
    rules = SignalRule.objects.filter(
        caller.match_readable("project"), enabled=True, **{f"{kind}__in": names}
    )
    return [f"Rule {rule.name} of {rule.source.name}" for rule in rules.select_related("source")]


def end(kind: str, names: Any, *, caller: Caller) -> None:
    rules = SignalRule.objects.filter(enabled=True, **{f"{kind}__in": names})
    for rule in rules.select_related("source").select_for_update(of=("self",)):
        before = make_rule_document(rule)
        rule.enabled = False
        rule.save(update_fields=["enabled"])
        _record_rule(rule, caller, before=before, after=make_rule_document(rule))


MAX_RULES = 100  # of a source
MAX_CONDITIONS = 10
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")


def find_source_problems(name: str) -> Iterator[Problem]:
    if not _NAME.fullmatch(name):
        yield Problem("name", "must be lower-case letters, digits, - and _, because it is part of the URL")
    elif SignalSource.objects.filter(name=name).exists():
        yield Problem("name", f"there is a source {name} already")


def find_rule_problems(
    source: SignalSource, values: Mapping[str, Any], *, instead: SignalRule | None
) -> Iterator[Problem]:
    others = source.rules.exclude(pk=instead.pk) if instead else source.rules.all()
    if others.filter(name=values["name"]).exists():
        yield Problem("name", f"there is a rule {values['name']} already")
    if len(others) >= MAX_RULES:
        yield Problem("name", f"a source has at most {MAX_RULES} rules")
    yield from match_problems(values["match"])


def match_problems(match: Mapping[str, str]) -> Iterator[Problem]:
    if not 1 <= len(match) <= MAX_CONDITIONS:
        yield Problem(
            "match", f"must have 1 to {MAX_CONDITIONS} conditions, such as labels.alertname: CheckoutErrors"
        )
    for path, value in match.items():
        if not path.strip() or not value:
            yield Problem("match", "each condition needs a path and a value; * is any value")


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
