"""Adds safeguards to a flag in an environment, changes and removes them."""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import check_problems
from groups.access import Caller
from groups.permissions import Permission
from releases.derive import ProposedChange
from releases.models import Safeguard
from releases.needs_request import Gated, NeedsChangeRequest
from releases.plans.access import Place, access_flag_in
from releases.plans.approval import is_let_through, record_skip
from releases.plans.documents import safeguard_document
from releases.plans.queries import needs_requests
from releases.safeguards.documents import assign_values
from releases.safeguards.queries import find_flag_safeguard, safeguards_of
from releases.safeguards.rules import check_room, safeguard_problems

UPDATE = Permission.UPDATE_FEATURE_ENVIRONMENT


@transactional
def set_flag_safeguard(place: Place, values: Mapping[str, Any], *, caller: Caller) -> Safeguard:
    """Adds a safeguard, or changes the one with the id. A breached one turns the flag off.

    Raises NotFound, NoAccess, ValidationError, and NeedsChangeRequest.
    """
    flag = access_flag_in(place, UPDATE, caller)
    check_problems(safeguard_problems(values))
    if key := values.get("id"):
        safeguard = find_flag_safeguard(flag, place.environment, key)
        before = safeguard_document(safeguard)
    else:
        check_room(safeguards_of(flag, place.environment).count(), f"{flag.name} in {place.environment}")
        safeguard, before = Safeguard(flag=flag, environment_id=place.environment), None
    _check_approved(place, "changeFeatureEnvSafeguard", {"safeguard": values})
    assign_values(safeguard, values)
    safeguard.approved, safeguard.look_at = needs_requests(place.project, place.environment), timezone.now()
    safeguard.save()
    after = safeguard_document(safeguard)
    _record(EventType.SAFEGUARD_CHANGED, place, safeguard, caller, before=before, after=after)
    return safeguard


@transactional
def remove_flag_safeguard(place: Place, key: str, *, caller: Caller) -> None:
    """Raises NotFound, NoAccess, and NeedsChangeRequest."""
    flag = access_flag_in(place, UPDATE, caller)
    safeguard = find_flag_safeguard(flag, place.environment, key)
    _check_approved(place, "deleteFeatureEnvSafeguard", {"safeguardId": key})
    before = safeguard_document(safeguard)
    safeguard.delete()
    _record(EventType.SAFEGUARD_DELETED, place, safeguard, caller, before=before)


def _check_approved(place: Place, action: str, payload: Any) -> None:
    """The gate sees no answer change yet. Raises NeedsChangeRequest. Skipping it is recorded."""
    record_skip(place)
    if not is_let_through(place):
        effect = f"Safeguards turn {place.feature} off by themselves."
        changes = [ProposedChange(place.feature, action, payload)]
        gated = Gated(place.project, place.environment, [place.feature], changes, effect=effect)
        raise NeedsChangeRequest(gated)


def _record(
    kind: EventType,
    place: Place,
    safeguard: Safeguard,
    caller: Caller,
    *,
    before: Any = None,
    after: Any = None,
) -> None:
    event = Event(
        type=kind,
        project=place.project,
        environment=place.environment,
        feature=place.feature,
        subject=str(safeguard),
        before=before,
        after=after,
    )
    record(event, actor=caller)
