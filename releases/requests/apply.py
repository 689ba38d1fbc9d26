"""Makes the changes of a request: all of them, or none."""

from django.db import transaction

from flagadmin.core.change_checks.comments import commenting
from flagadmin.core.errors import AppError, Conflict, NoAccess, ValidationError
from groups.access import EVERYTHING, Caller
from groups.permissions import Permission
from projects.access import access_project_for_update
from releases.applying import applying
from releases.changes import KINDS
from releases.models import ChangeRequest
from releases.requests.access import is_author
from releases.requests.approvals import has_policy
from releases.requests.conflicts import find_conflict, sentence_of, target_of

APPLY = Permission.APPLY_CHANGE_REQUEST


def make_changes(request: ChangeRequest, caller: Caller, *, with_own_rights: bool = False) -> None:
    """Makes all changes, or none, whatever the caller may do otherwise, or only what they may.

    Raises Conflict with the change named, and NoAccess.
    """
    maker = caller if with_own_rights else Caller(user=caller.user, token=caller.token, rights=EVERYTHING)
    with applying(request.project_id, request.environment_id):
        access_project_for_update(maker, request.project_id, None)
        for number, change in enumerate(request.changes.all(), 1):
            sentence = sentence_of(request, change)
            try:
                KINDS[change.action].apply(target_of(request, change), change.payload, maker)
            except NoAccess:
                raise
            except AppError as error:
                raise Conflict(
                    f"Change {number} ({sentence}): {error.message}", details=error.details
                ) from error


def make_changes_as(caller: Caller, request: ChangeRequest) -> None:
    """`make_changes`, with the caller's own permissions unless they may apply whatever is approved.

    What nobody had to approve, because the environment asks for no requests, anybody changes with their own.
    """
    here = {"project": request.project_id, "environment": request.environment_id}
    reviewed = has_policy(request) or request.reviews.filter(approved=True).exists()
    make_changes(request, caller, with_own_rights=not (reviewed and caller.can(APPLY, **here)))


def try_changes_as(caller: Caller, request: ChangeRequest) -> None:
    """`make_changes_as`, rolled back. Raises what that raises."""
    with transaction.atomic(), commenting("Tried, and rolled back"):
        make_changes_as(caller, request)
        transaction.set_rollback(True)


def try_changes(request: ChangeRequest) -> None:
    """Makes the changes, and rolls them back. Raises ValidationError if that fails."""
    try:
        with transaction.atomic(), commenting("Tried, and rolled back"):
            make_changes(request, Caller.system())
            transaction.set_rollback(True)
    except Conflict as error:
        raise ValidationError(error.message, details=error.details) from error


def check_conflicts(request: ChangeRequest) -> None:
    """Raises Conflict if what a change was made from has changed."""
    for number, change in enumerate(request.changes.all(), 1):
        if conflict := find_conflict(request, change):
            raise Conflict(f"Change {number} ({sentence_of(request, change)}): {conflict}")


def may_apply(request: ChangeRequest, caller: Caller) -> bool:
    """With the permission, or the author alone if nobody needs to approve it: with their own permissions then."""
    alone = request.required_approvals == 0 and is_author(request, caller)
    return alone or caller.can(APPLY, project=request.project_id, environment=request.environment_id)


def check_may_apply(request: ChangeRequest, caller: Caller) -> None:
    """Raises NoAccess."""
    if not may_apply(request, caller):
        caller.check(APPLY, project=request.project_id, environment=request.environment_id)
