"""Proposes changes that a program derives, as somebody who runs it again and again wants it: one request for them."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import Conflict
from groups.access import Caller
from releases.derive import ProposedChange
from releases.models import ChangeRequest
from releases.requests.access import State
from releases.requests.conflicts import explain_conflict
from releases.requests.details import set_title
from releases.requests.propose import add_changes
from releases.requests.queries import UNDECIDED, by
from releases.requests.states import set_state


@transactional
def propose_once(
    project_id: str, environment: str, changes: Sequence[ProposedChange], *, title: str, caller: Caller
) -> tuple[ChangeRequest, bool]:
    """A request with these changes, sent for review, and whether it is new.

    An open one of the caller's with this title and the same changes is returned as it is; one with other changes, or
    in conflict, is cancelled. Raises Conflict if the caller has a draft there, and what adding and sending the changes
    raises.
    """
    mine = ChangeRequest.objects.filter(by(caller), project=project_id, environment=environment)
    if draft := mine.filter(state=State.DRAFT).first():
        raise Conflict(
            f"You have a draft for {environment} in project {project_id}, change request {draft.pk}. "
            "Send or discard it first."
        )
    open_requests = list(mine.filter(state__in=UNDECIDED, title=title))
    with transaction.atomic():
        request = add_changes(project_id, environment, changes, caller=caller)
        wanted = _contents(request)
        same = next((other for other in open_requests if _is_same(other, wanted)), None)
        if same is not None:
            transaction.set_rollback(True)
    if same is not None:
        return same, False
    for other in open_requests:
        text = f"Replaced by change request {request.pk}."
        set_state(project_id, other.pk, State.CANCELLED, text=text, caller=caller)
    set_title(project_id, request.pk, title, caller=caller)
    return set_state(project_id, request.pk, State.IN_REVIEW, caller=caller), True


def _is_same(request: ChangeRequest, wanted: list[Any]) -> bool:
    return _contents(request) == wanted and not explain_conflict(request, list(request.changes.all()))


def _contents(request: ChangeRequest) -> list[Any]:
    return list(request.changes.order_by("id").values_list("feature", "action", "payload"))
