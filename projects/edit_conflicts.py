"""Changing exactly what somebody was shown: refused when somebody else has changed it since.

``fingerprint`` is that of what was shown; with an empty one, nothing is compared.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from flagadmin.db.transactions import transactional
from flagadmin.errors import Conflict
from groups.access import Caller
from groups.permissions import Permission
from projects.access import access_flag_for_update
from projects.flags.environments import set_variants
from projects.flags.queries import strategy_documents
from projects.models import Flag, FlagEnvironment, Segment, Strategy
from projects.segments.actions import access_segment_for_update, update_segment
from projects.segments.documents import segment_document
from projects.strategies.actions import access_strategy, update_strategy

Document = dict[str, Any]


def strategy_fingerprint(strategy: Strategy) -> str:
    """Differs when anything of the strategy does but its place among the others."""
    [document] = strategy_documents([strategy])
    return _fingerprint({key: value for key, value in document.items() if key != "sortOrder"})


def stored_variants(flag: Flag, environment: str) -> list[Document]:
    rows = FlagEnvironment.objects.filter(flag=flag, environment_id=environment)
    return rows.values_list("variants", flat=True).first() or []


def variants_fingerprint(variants: Sequence[Document]) -> str:
    return _fingerprint(variants)


def segment_fingerprint(segment: Segment) -> str:
    return _fingerprint(segment_document(segment))


@transactional
def update_strategy_as_seen(
    project_id: str,
    name: str,
    environment: str,
    strategy_id: str,
    given: Mapping[str, Any],
    fingerprint: str,
    *,
    caller: Caller,
) -> None:
    """Raises Conflict where the strategy has another fingerprint, and what ``update_strategy`` raises."""
    permission = Permission.UPDATE_FEATURE_STRATEGY
    flag = access_flag_for_update(caller, project_id, name, permission, environment=environment)
    strategy = access_strategy(flag, environment, strategy_id)
    _check("This strategy has", strategy_fingerprint(strategy), fingerprint)
    update_strategy(project_id, name, environment, strategy_id, given, caller=caller)


@transactional
def set_variants_as_seen(
    project_id: str,
    name: str,
    environment: str,
    given: Sequence[Mapping[str, Any]],
    fingerprint: str,
    *,
    caller: Caller,
) -> None:
    """Raises Conflict where the flag's variants have another fingerprint, and what ``set_variants`` raises."""
    permission = Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS
    flag = access_flag_for_update(caller, project_id, name, permission, environment=environment)
    _check("These variants have", variants_fingerprint(stored_variants(flag, environment)), fingerprint)
    set_variants(project_id, name, environment, given, caller=caller)


@transactional
def update_segment_as_seen(
    segment_id: int, changes: Mapping[str, Any], fingerprint: str, *, caller: Caller
) -> Segment:
    """Raises Conflict where the segment has another fingerprint, and what ``update_segment`` raises."""
    segment = access_segment_for_update(caller, segment_id, Permission.UPDATE_SEGMENT)
    _check("This segment has", segment_fingerprint(segment), fingerprint)
    return update_segment(segment_id, changes, caller=caller)


def _fingerprint(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _check(what: str, now: str, seen: str) -> None:
    if seen and now != seen:
        raise Conflict(f"{what} changed since you opened this page. Nothing was saved.")
