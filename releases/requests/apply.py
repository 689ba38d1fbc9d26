"""Makes the changes of a request: all of them, or none."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from django.db import transaction

from flagadmin.core.audit.record import recording_together
from flagadmin.core.change_options import changing
from flagadmin.core.db.transactions import run_and_roll_back
from flagadmin.core.errors import AppError, Conflict, NoAccess, Problem, ValidationError
from groups.access import Caller
from groups.permissions import Permission, Scope
from projects.access import access_project_for_update
from projects.projects.policies import needs_request
from releases.changes import KINDS, join_paths
from releases.derive import ProposedChange
from releases.models import Change, ChangeRequest
from releases.requests.access import is_author
from releases.requests.conflicts import explain_conflict, make_target, say_change

APPLY = Permission.APPLY_CHANGE_REQUEST


class ChangeRefused(Conflict):
    """A change cannot be made. ``details`` have their paths in the change."""

    def __init__(self, change: Change, message: str, problems: Iterable[Problem]) -> None:
        self.change = change
        place = KINDS[change.action].place
        details = [Problem(join_paths(place, problem.path), problem.message) for problem in problems]
        super().__init__(message, details=details)


def make_changes(request: ChangeRequest, caller: Caller, *, with_own_rights: bool = False) -> None:
    """Makes all changes, or none: as far as the caller may apply them (`_is_covered`), or only what they may do.

    Raises Conflict with the change named, and NoAccess.
    """
    numbered = list(enumerate(request.changes.all(), 1))
    flags = {change.feature for _, change in numbered}
    # One for all changes, whose events are recorded together then.
    entitled = caller.with_all_rights()
    with changing(approved_in=(request.project_id, request.environment_id)):
        # A segment, which is of no flag, changes whichever use it.
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
    """Whether the approval of the change stands for the caller's rights: it does in its environment.

    What changes all environments takes somebody who may apply requests in all of them, or may do it themselves. What
    changes other projects too has been approved in none of them.
    """
    scope = KINDS[change.action].find_scope(change.payload)
    return scope is Scope.ENVIRONMENT or (
        scope is Scope.PROJECT and caller.can(APPLY, project=request.project_id)
    )


def _make_at_once(request: ChangeRequest, changes: Sequence[Change], maker: Caller) -> bool:
    """Makes changes of one kind, if it can make several at once, no two are of the same thing, and none is refused."""
    kind = KINDS[changes[0].action]
    if not kind.applies_together:
        return False
    subjects = {(change.feature, kind.find_subject(change.payload)) for change in changes}
    if len(changes) == 1 or len(subjects) < len(changes):
        return False
    try:
        with transaction.atomic(), recording_together():
            kind.apply_all([(make_target(request, change), change.payload) for change in changes], maker)
    except AppError:
        return False  # to be made one by one, which says which is refused
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
    """`make_changes`, with the caller's own permissions unless they may apply whatever is approved.

    What nobody had to approve, because the environment asks for no requests, anybody changes with their own.
    """
    here = {"project": request.project_id, "environment": request.environment_id}
    is_reviewed = (
        needs_request(request.project_id, [request.environment_id])
        or request.reviews.filter(approved=True).exists()
    )
    make_changes(request, caller, with_own_rights=not (is_reviewed and caller.can(APPLY, **here)))


def try_changes_as(caller: Caller, request: ChangeRequest) -> None:
    """`make_changes_as`, rolled back. Raises what that raises."""
    with changing(comment="Tried, and rolled back"):
        run_and_roll_back(lambda: make_changes_as(caller, request))


def try_changes(request: ChangeRequest, proposed: Mapping[int | None, ProposedChange] | None = None) -> None:
    """Makes the changes, and rolls them back. Raises ValidationError if that fails.

    `proposed` are those changes, by their ids, whose places in a body the error names.
    """
    try:
        with changing(comment="Tried, and rolled back"):
            run_and_roll_back(lambda: make_changes(request, Caller.system()))
    except ChangeRefused as error:
        place = (proposed or {}).get(error.change.pk)
        details = [
            Problem(place.locate(problem.path), problem.message) if place else problem
            for problem in error.details
        ]
        raise ValidationError(error.message, details=details) from error


def check_conflicts(request: ChangeRequest) -> None:
    """Raises Conflict if what a change was made from has changed."""
    if conflict := explain_conflict(request, list(request.changes.all())):
        raise Conflict(conflict)


def may_apply(request: ChangeRequest, caller: Caller, *, needed: int | None = None) -> bool:
    """Whether the caller has the permission, or is the author if no approval is needed: with own permissions then.

    ``needed``: approvals, if not as many as when it was sent.
    """
    needed = request.required_approvals if needed is None else needed
    alone = needed == 0 and is_author(request, caller)
    return alone or caller.can(APPLY, project=request.project_id, environment=request.environment_id)


def check_may_apply(request: ChangeRequest, caller: Caller) -> None:
    """Raises NoAccess."""
    if not may_apply(request, caller):
        caller.check(APPLY, project=request.project_id, environment=request.environment_id)
