"""Creates, changes and deletes integrations, and triggers deliveries.

Rules for integrations.
"""

import base64
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.utils import timezone

from flagadmin.core.audit.record import AuditEvent, Event, EventType, record
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.statements import fetch_row
from flagadmin.core.db.transactions import transactional
from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import InvalidOperation, Problem, ValidationError, check_problems
from flagadmin.core.http.outside import split_url
from groups.access import Caller, Permission
from integrations.addons.queries import (
    find_integration,
    find_readable_deliveries,
    make_integration_document,
    name_of,
)
from integrations.models import Delivery, Integration, SecretKeyChanged
from integrations.providers import DEPRECATED, MASK, PROVIDERS
from projects.access import describe_unknown_project
from projects.deletion.kept_names import ENVIRONMENT, PROJECT
from projects.history.queries import ACCESS_TYPES
from projects.models import Environment, Project

OLD_KEY_SECONDS = 24 * 3600
"""How long requests are also signed with the replaced key."""
_KEY_BYTES = 32


@transactional
def create_integration(values: Mapping[str, Any], *, caller: Caller) -> Integration:
    """``values``: the members of the API's body. Raises NoAccess, ValidationError."""
    caller.check(Permission.CREATE_ADDON)
    _check_may_tell(values["events"], caller)
    integration = Integration()
    _assign(integration, values, caller)
    integration.save(force_insert=True)
    integration.refresh_from_db()  # the database sets the time
    event = Event(
        type=EventType.ADDON_CREATED,
        subject=name_of(integration),
        after=make_integration_document(integration),
    )
    record(event, actor=caller)
    return integration


def create_switched_off(values: Mapping[str, Any]) -> list[str]:
    """Creates an integration copied from another server. Returns the unsupported events. Raises ValidationError."""
    provider = PROVIDERS.get(values["provider"])
    offered = [event for event in values["events"] if provider is None or event in provider.events]
    options = {"enabled": False, "tags": [], "productionOnly": False, "onlyIfUsersChange": False}
    create_integration({**values, **options, "events": offered}, caller=Caller.system())
    return [event for event in values["events"] if event not in offered]


@transactional
def update_integration(
    integration_id: int, values: Mapping[str, Any], *, expected: Expected = None, caller: Caller
) -> Integration:
    """Replaces everything except for masked secrets. Raises NotFound, NoAccess, EditConflict, ValidationError."""
    integration = access_for_update(caller, integration_id, Permission.UPDATE_ADDON)
    before = make_integration_document(integration)
    check_expected(expected, before)
    _check_may_tell([*integration.events, *values["events"]], caller)
    _assign(integration, values, caller)
    integration.send_after = timezone.now()  # pending deliveries may arrive now
    integration.save()
    _record_update(integration, before, make_integration_document(integration), caller)
    return integration


@transactional
def delete_integration(integration_id: int, *, expected: Expected = None, caller: Caller) -> None:
    """Deletes an integration with its deliveries. Raises NotFound, NoAccess, EditConflict."""
    integration = access_for_update(caller, integration_id, Permission.DELETE_ADDON)
    before = make_integration_document(integration)
    check_expected(expected, before)
    record(Event(type=EventType.ADDON_DELETED, subject=name_of(integration), before=before), actor=caller)
    integration.delete()


@transactional
def make_signing_key(integration_id: int, *, caller: Caller) -> str:
    """Returns a new key, which cannot be read later. The previous key stays valid for a day.

    Raises NotFound, NoAccess, InvalidOperation (the stored secrets cannot be read).
    """
    integration = access_for_update(caller, integration_id, Permission.UPDATE_ADDON)
    try:
        stored = integration.secrets()
    except SecretKeyChanged as error:
        raise InvalidOperation(error.message) from error
    key = f"whsec_{base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()}"
    until = time.time() + OLD_KEY_SECONDS
    earlier = [{"key": old["key"], "until": until} for old in stored["keys"][:1]]
    integration.set_secrets(stored["parameters"], [{"key": key, "until": None}, *earlier])
    integration.save(update_fields=["encrypted"])
    document = make_integration_document(integration)
    _record_update(integration, document, document | {"signingKey": MASK}, caller)
    return key


@transactional
def send_test(integration_id: int, *, caller: Caller) -> Delivery:
    """Queues a test before pending deliveries. Raises NotFound, NoAccess, ValidationError."""
    integration = access_for_update(caller, integration_id, Permission.UPDATE_ADDON)
    if not integration.enabled:
        raise ValidationError.at("enabled", "Enable the integration before you send a test.")
    _send_now(integration)
    return Delivery.objects.create(integration=integration)


@transactional
def send_again(integration_id: int, delivery_id: int, *, caller: Caller) -> Delivery:
    """Queues a delivery again, with the same id. Raises NotFound, NoAccess."""
    integration = access_for_update(caller, integration_id, Permission.UPDATE_ADDON)
    delivery = get_or_404(
        find_readable_deliveries(caller, integration.pk).select_for_update(),
        "Delivery not found.",
        pk=delivery_id,
    )
    _check_may_tell(
        AuditEvent.objects.filter(pk=delivery.event_id or 0).values_list("type", flat=True), caller
    )
    delivery.state, delivery.attempts, delivery.first_sent_at = Delivery.State.PENDING, 0, None
    delivery.details = None  # also to recipients who already got it
    delivery.save(update_fields=["state", "attempts", "first_sent_at", "details"])
    _send_now(integration)
    return delivery


@transactional
def send_all_again(integration_id: int, *, caller: Caller) -> int:
    """Queues all failed deliveries again, the oldest first, with the same ids. Returns their number.

    Raises NotFound, NoAccess.
    """
    integration = access_for_update(caller, integration_id, Permission.UPDATE_ADDON)
    failed = find_readable_deliveries(caller, integration.pk).filter(state=Delivery.State.FAILED)
    events = AuditEvent.objects.filter(pk__in=failed.values("event_id"))
    _check_may_tell(events.values_list("type", flat=True).distinct(), caller)
    number = failed.update(state=Delivery.State.PENDING, attempts=0, first_sent_at=None, details=None)
    _send_now(integration)
    return number


def access_for_update(caller: Caller, integration_id: int, permission: Permission) -> Integration:
    """The integration, locked. Raises NotFound, NoAccess."""
    find_integration(caller, integration_id)
    caller.check(permission)
    return get_or_404(Integration.objects.select_for_update(), "Could not find addon", pk=integration_id)


def _check_may_tell(types: Iterable[str], caller: Caller) -> None:
    """Raises NoAccess for events that the caller may not read."""
    if not set(ACCESS_TYPES).isdisjoint(types):
        caller.check(Permission.READ_LOGS)


def _send_now(integration: Integration) -> None:
    integration.send_after = timezone.now()
    integration.save(update_fields=["send_after"])


def _assign(integration: Integration, values: Mapping[str, Any], caller: Caller) -> None:
    """Sets the values. Raises ValidationError with every problem."""
    check_problems(find_provider_problems(values["provider"]))
    stored = _read_secrets(integration)
    kept = stored["parameters"] if integration.provider == values["provider"] else {}
    sent = {name: value for name, value in values["parameters"].items() if value not in ("", None)}
    masked = {name for name, value in sent.items() if value == MASK}
    parameters = {name: kept.get(name, "") if name in masked else value for name, value in sent.items()}
    problems = [
        *parameter_problems(values["provider"], parameters),
        *tag_problems(values["tags"]),
        *_find_project_problems(integration, values["projects"], caller),
        *_find_mask_problems(masked, integration.parameters, kept, parameters),
    ]
    check_problems(problems)
    sensitive = PROVIDERS[values["provider"]].sensitive
    integration.provider = values["provider"]
    integration.enabled = values["enabled"]
    integration.description = values["description"]
    for name in ("events", "projects", "environments", "tags"):
        setattr(integration, name, list(dict.fromkeys(values[name])))
    integration.ended = keep_ended(integration)
    integration.production_only = values["productionOnly"]
    integration.only_if_users_change = values["onlyIfUsersChange"]
    integration.parameters = {name: value for name, value in parameters.items() if name not in sensitive}
    integration.set_secrets(
        {name: value for name, value in parameters.items() if name in sensitive}, stored["keys"]
    )


def _find_project_problems(
    integration: Integration, projects: Iterable[str], caller: Caller
) -> Iterator[Problem]:
    """The added projects that somebody who does not read all projects does not read."""
    if (readable := caller.readable_projects) is not None:
        for index, project in enumerate(projects):
            if project not in {"*", *readable, *integration.projects}:
                yield Problem(f"projects[{index}]", describe_unknown_project(caller, project))


def _find_mask_problems(
    masked: set[str], before: Mapping[str, Any], kept: Mapping[str, Any], parameters: Mapping[str, Any]
) -> Iterator[Problem]:
    """Finds masks without a stored secret (``kept``), or with the secret of another server."""
    is_elsewhere = leads_elsewhere(_get_url({**before, **kept}), _get_url(parameters))
    for name in sorted(masked):
        if not kept.get(name):
            text = f"{MASK} stands for nothing here: no secret is stored. Enter it, or leave it empty."
            yield Problem(f"parameters.{name}", text)
        elif is_elsewhere:
            yield Problem(f"parameters.{name}", "Enter it again: the URL leads to another server.")


def _get_url(parameters: Mapping[str, Any]) -> str:
    return str(parameters.get("url") or "")


def _read_secrets(integration: Integration) -> dict[str, Any]:
    """The secrets; none if SECRET_KEY has changed, so that all required ones must be entered again."""
    try:
        return integration.secrets()
    except SecretKeyChanged:
        return {"parameters": {}, "keys": []}


def _record_update(integration: Integration, before: Document, after: Document, caller: Caller) -> None:
    record(
        Event(type=EventType.ADDON_UPDATED, subject=name_of(integration), before=before, after=after),
        actor=caller,
    )


COLUMNS = {PROJECT: "projects", ENVIRONMENT: "environments"}
_LAST_EVENT = "SELECT last_value FROM audit_auditevent_id_seq"


def list_users(kind: str, names: Any, caller: Caller) -> Iterable[str]:
    return [
        name_of(integration) for integration in _naming(kind, names)
    ]  # such a name tells nothing of projects


def end(kind: str, names: Any, *, caller: Caller) -> None:
    """Records the last event of these names. Later events belong to a successor with the name and are not sent."""
    for integration in _naming(kind, names, for_update=True):
        before, column = make_integration_document(integration), COLUMNS[kind]
        (last,) = fetch_row(_LAST_EVENT)
        gone = dict.fromkeys(set(names).intersection(getattr(integration, column)), last)
        integration.ended = {**integration.ended, column: {**integration.ended.get(column, {}), **gone}}
        integration.save(update_fields=["ended"])
        after = make_integration_document(integration)
        event = Event(type=EventType.ADDON_UPDATED, subject=name_of(integration), before=before, after=after)
        record(event, actor=caller)


def _naming(kind: str, names: Any, *, for_update: bool = False) -> Iterable[Integration]:
    if kind not in COLUMNS:
        return []
    rows = Integration.objects.select_for_update() if for_update else Integration.objects
    return rows.filter(**{f"{COLUMNS[kind]}__overlap": list(names)}).order_by("pk")


def list_created_again(integration: Integration) -> list[str]:
    """The ended names that another project or environment has now."""
    existing = _read_existing(integration)
    return sorted(
        name for column, ended in integration.ended.items() for name in ended if name in existing[column]
    )


def _read_existing(integration: Integration) -> dict[str, set[str]]:
    projects = Project.objects.filter(pk__in=integration.projects).values_list("pk", flat=True)
    environments = Environment.objects.filter(pk__in=integration.environments).values_list("pk", flat=True)
    return {"projects": set(projects), "environments": set(environments)}


def keep_ended(integration: Integration) -> dict[str, dict[str, int]]:
    """The names that stay ended after a user has saved them: those that do not exist now."""
    existing = _read_existing(integration)
    kept = {
        column: {
            name: last
            for name, last in ended.items()
            if name in getattr(integration, column) and name not in existing[column]
        }
        for column, ended in integration.ended.items()
    }
    return {column: names for column, names in kept.items() if names}


def find_provider_problems(name: str) -> Iterator[Problem]:
    if name in DEPRECATED:
        yield Problem("provider", DEPRECATED[name])
    elif name not in PROVIDERS:
        yield Problem("provider", f"Unknown addon provider {name[:100]}. Available: {', '.join(PROVIDERS)}.")


def parameter_problems(provider: str, values: dict[str, Any]) -> Iterator[Problem]:
    """``values``: all parameters, including the kept secrets."""
    known = PROVIDERS[provider].parameters
    missing = [parameter.name for parameter in known if parameter.required and not values.get(parameter.name)]
    if missing:
        yield Problem("parameters", f"Missing required parameters: {','.join(missing)}")
    for parameter in known:
        if value := values.get(parameter.name):
            for message in parameter.find_problems(str(value)):
                yield Problem(f"parameters.{parameter.name}", message)
    for name in values.keys() - {parameter.name for parameter in known}:
        yield Problem(f"parameters.{name}", f"is not a parameter of {provider}")


def tag_problems(tags: list[str]) -> Iterator[Problem]:
    for position, tag in enumerate(tags):
        if not all(part.strip() for part in tag.partition(":")):
            yield Problem(
                f"tags[{position}]", f"{tag[:100]!r} is no tag: write its type and value as team:checkout"
            )


def leads_elsewhere(url: str, other: str) -> bool:
    """Whether the URLs lead to different servers. A stored secret must not silently go to another one."""
    first, second = split_url(url), split_url(other)
    if first is None or second is None:
        return True
    return (first.scheme, first.netloc) != (second.scheme, second.netloc)
