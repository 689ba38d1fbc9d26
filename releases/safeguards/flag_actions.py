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
from projects.projects.policies import needs_request
from releases.derive import ProposedChange
from releases.gate_refusal import Gated, NeedsChangeRequest
from releases.models import Safeguard
from releases.plans.access import FlagPath, access_flag_in
from releases.plans.approval import is_let_through, record_skip
from releases.safeguards.documents import assign_values, safeguard_document
from releases.safeguards.queries import find_flag_safeguard, read_safeguards
from releases.safeguards.rules import check_room, safeguard_problems

UPDATE = Permission.UPDATE_FEATURE_ENVIRONMENT


@transactional
def set_flag_safeguard(flag_path: FlagPath, values: Mapping[str, Any], *, caller: Caller) -> Safeguard:
    """Adds a safeguard, or changes the one with the id. A breached one turns the flag off.

    Raises NotFound, NoAccess, ValidationError, and NeedsChangeRequest.
    """
    flag = access_flag_in(flag_path, UPDATE, caller)
    check_problems(safeguard_problems(values))
    if key := values.get("id"):
        safeguard = find_flag_safeguard(flag, flag_path.environment, key)
        before = safeguard_document(safeguard)
    else:
        check_room(
            read_safeguards(flag, flag_path.environment).count(), f"{flag.name} in {flag_path.environment}"
        )
        safeguard, before = Safeguard(flag=flag, environment_id=flag_path.environment), None
    _check_approved(flag_path, "changeFeatureEnvSafeguard", {"safeguard": values})
    assign_values(safeguard, values)
    safeguard.approved = needs_request(flag_path.project, [flag_path.environment])
    safeguard.look_at = timezone.now()
    safeguard.save()
    after = safeguard_document(safeguard)
    _record(EventType.SAFEGUARD_CHANGED, flag_path, safeguard, caller, before=before, after=after)
    return safeguard


@transactional
def remove_flag_safeguard(flag_path: FlagPath, key: str, *, caller: Caller) -> None:
    """Raises NotFound, NoAccess, and NeedsChangeRequest."""
    flag = access_flag_in(flag_path, UPDATE, caller)
    safeguard = find_flag_safeguard(flag, flag_path.environment, key)
    _check_approved(flag_path, "deleteFeatureEnvSafeguard", {"safeguardId": key})
    before = safeguard_document(safeguard)
    safeguard.delete()
    _record(EventType.SAFEGUARD_DELETED, flag_path, safeguard, caller, before=before)


def _check_approved(flag_path: FlagPath, action: str, payload: Any) -> None:
    """The gate sees no answer change yet. Raises NeedsChangeRequest. Skipping it is recorded."""
    record_skip(flag_path)
    if not is_let_through(flag_path):
        effect = f"Safeguards turn {flag_path.feature} off by themselves."
        changes = [ProposedChange(flag_path.feature, action, payload)]
        gated = Gated(flag_path.project, flag_path.environment, [flag_path.feature], changes, effect=effect)
        raise NeedsChangeRequest(gated)


def _record(
    kind: EventType,
    flag_path: FlagPath,
    safeguard: Safeguard,
    caller: Caller,
    *,
    before: Any = None,
    after: Any = None,
) -> None:
    event = Event(
        type=kind,
        project=flag_path.project,
        environment=flag_path.environment,
        feature=flag_path.feature,
        subject=str(safeguard),
        before=before,
        after=after,
    )
    record(event, actor=caller)
