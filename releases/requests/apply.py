"""Makes the changes of a request: all of them, or none."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from django.db import transaction

from flagadmin.core.audit.record import recording_together
from flagadmin.core.change_options import changing
from flagadmin.core.db.transactions import run_and_roll_back
from flagadmin.core.errors import AppError, Conflict, NoAccess, Problem, ValidationError
from groups.access import Caller
from groups.permissions import Permission, Scope
from projects.access import access_project_for_update
from projects.flags.payloads.stored import check_stored
from projects.projects.queries import needs_request
from releases.changes import KINDS, join_paths
from releases.changes.flags import InEnvironment, apply_together
from releases.derive import ProposedChange
from releases.models import Change, ChangeRequest
from releases.requests.approvals import is_author
from releases.requests.conflicts import explain_conflict, make_target, say_change
from releases.requests.lapses import count_approvals

APPLY = Permission.APPLY_CHANGE_REQUEST


class ChangeRefused(Conflict):
    """A change cannot be made. ``details`` have their paths in the change."""

    def __init__(self, change: Change, message: str, problems: Iterable[Problem]) -> None:
        self.change = change
        place = KINDS[change.action].place
        details = [Problem(join_paths(place, problem.path), problem.message) for problem in problems]
        super().__init__(message, details=details)


def make_changes(request: ChangeRequest, caller: Caller, *, with_own_rights: bool = False) -> None:
    """Makes all changes, or none: as far as the caller may apply them (`_is_covered`), or with own rights only.

    Raises Conflict with the change named, and NoAccess.
    """
    numbered = list(enumerate(request.changes.all(), 1))
    flags = {change.feature for _, change in numbered}
    # One for all changes, so that their events are recorded together.
    entitled = caller.with_all_rights()
    with changing(approved_in=(request.project_id, request.environment_id), approved_by=request.pk):
        # A segment belongs to no flag, and changes every flag that uses it.
        access_project_for_update(caller, request.project_id, None, flags=None if "" in flags else flags)
        with recording_together():
            for _, alike in groupby(numbered, key=lambda pair: pair[1].action):
                changes = list(alike)
                makers = [
                    entitled if not with_own_rights and _is_covered(request, change, caller) else caller
                    for _, change in changes
                ]
                if not _make_at_once(request, [change for _, change in changes], makers[0]):
                    for (number, change), maker in zip(changes, makers, strict=True):
                        _make(request, number, change, maker)


def _is_covered(request: ChangeRequest, change: Change, caller: Caller) -> bool:
    """Whether the approval of the change replaces the caller's rights, as it does in its environment.

    A change of all environments needs a caller who may apply requests in all of them, or make the change directly. A
    change of other projects is not covered by the approval.
    """
    scope = KINDS[change.action].find_scope(change.payload)
    return scope is Scope.ENVIRONMENT or (
        scope is Scope.PROJECT and caller.can(APPLY, project=request.project_id)
    )


def _make_at_once(request: ChangeRequest, changes: Sequence[Change], maker: Caller) -> bool:
    """Makes changes of one kind at once, if they are of flags in the environment, and none is refused."""
    if len(changes) == 1 or not isinstance(KINDS[changes[0].action], InEnvironment):
        return False
    planned: Any = [
        (KINDS[change.action], make_target(request, change), change.payload) for change in changes
    ]
    try:
        with transaction.atomic(), recording_together():
            apply_together(planned, maker)
    except AppError:
        return False  # made one by one instead, to find the refused one
    return True


def _make(request: ChangeRequest, number: int, change: Change, maker: Caller) -> None:
    sentence = say_change(request, change)
    try:
        KINDS[change.action].apply(make_target(request, change), change.payload, maker)
    except NoAccess:
        raise
    except AppError as error:
        raise ChangeRefused(
            change, f"Change {number} ({sentence}): {error.message}", error.details
        ) from error


def make_changes_as(caller: Caller, request: ChangeRequest) -> None:
    """Like `make_changes`, but with the caller's own permissions unless they may apply approved changes.

    If the environment requires no requests, nothing had to be approved, and callers need their own permissions.
    """
    here = {"project": request.project_id, "environment": request.environment_id}
    is_reviewed = needs_request(request.project_id, [request.environment_id]) or count_approvals(request) > 0
    make_changes(request, caller, with_own_rights=not (is_reviewed and caller.can(APPLY, **here)))


def try_changes_as(caller: Caller, request: ChangeRequest) -> None:
    """Like `make_changes_as`, but rolled back. Raises the same errors."""
    with changing(comment="Tried, and rolled back"):
        run_and_roll_back(lambda: make_changes_as(caller, request))


def try_changes(request: ChangeRequest, proposed: Mapping[int | None, ProposedChange] | None = None) -> None:
    """Makes the changes, and rolls them back. Raises ValidationError if that fails.

    `proposed` are some changes by their ids, whose paths in a body the error names.
    """
    try:
        with changing(comment="Tried, and rolled back"):
            run_and_roll_back(lambda: _make_and_check(request))
    except ChangeRefused as error:
        place = (proposed or {}).get(error.change.pk)
        details = [
            Problem(place.locate(problem.path), problem.message) if place else problem
            for problem in error.details
        ]
        raise ValidationError(error.message, details=details) from error


def _make_and_check(request: ChangeRequest) -> None:
    """Checks payloads before the changes are rolled back; the running action would check them only at its end."""
    make_changes(request, Caller.system())
    check_stored(request.project_id, {change.feature for change in request.changes.all() if change.feature})


def check_conflicts(request: ChangeRequest) -> None:
    """Raises Conflict if the basis of a change has changed."""
    if conflict := explain_conflict(request, list(request.changes.all())):
        raise Conflict(conflict)


def may_apply(request: ChangeRequest, caller: Caller, *, needed: int | None = None) -> bool:
    """Whether the caller has the permission, or is the author of a request without required approvals.

    ``needed``: the number of approvals, if it differs from the number when the request was sent.
    """
    needed = request.required_approvals if needed is None else needed
    alone = needed == 0 and is_author(request, caller)
    return alone or caller.can(APPLY, project=request.project_id, environment=request.environment_id)


def check_may_apply(request: ChangeRequest, caller: Caller) -> None:
    """Raises NoAccess."""
    if not may_apply(request, caller):
        caller.check(APPLY, project=request.project_id, environment=request.environment_id)
