"""Finds change requests, and locks those that are changed."""

from typing import Any

from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import Conflict, InvalidOperation, NoAccess, NotFound
from groups.access import Caller
from projects.access import access_project
from projects.models import Project
from releases.models import ChangeRequest

State = ChangeRequest.State
OPEN = (State.DRAFT, State.IN_REVIEW, State.APPROVED)


def access_request(project_id: str, request_id: int, caller: Caller) -> ChangeRequest:
    """A request that the caller may read: in a readable project, and not another user's draft. Raises NotFound."""
    access_project(caller, project_id)
    request = ChangeRequest.objects.filter(project=project_id, pk=request_id).first()
    if request is None or (request.state == State.DRAFT and not is_author(request, caller)):
        raise NotFound(f"Change request {request_id} not found in project {project_id}.")
    return request


def access_request_for_update(
    project_id: str, request_id: int, caller: Caller, *, expected: Expected = None
) -> ChangeRequest:
    """``expected``: versions read by the caller, one of them of its proposal. Raises NotFound, EditConflict."""
    access_request(project_id, request_id, caller)
    lock_project(project_id)
    request = ChangeRequest.objects.select_for_update(of=("self",)).filter(pk=request_id).first()
    if request is None:
        raise NotFound(f"Change request {request_id} not found in project {project_id}.")
    message = f"Change request {request_id} has been edited since you opened it. Read what it changes now."
    check_expected(expected, list_proposal(request), message)
    return request


def list_proposal(request: ChangeRequest) -> list[dict[str, Any]]:
    """Its proposal, which users must have read before they approve, apply or schedule it."""
    return [
        {"id": change.pk, "action": change.action, "feature": change.feature, "payload": change.payload}
        for change in request.changes.order_by("id")
    ]


def access_own_for_update(project_id: str, request_id: int, caller: Caller) -> ChangeRequest:
    """An open request of the caller's own."""
    request = access_request_for_update(project_id, request_id, caller)
    if not caller.is_admin:
        check_author(request, caller)
    check_state(request, "change", *OPEN)
    return request


def check_may_propose(project_id: str, caller: Caller) -> None:
    """Raises NotFound, and NoAccess if only members of the project may propose changes."""
    project = access_project(caller, project_id)
    if project.mode != Project.Mode.OPEN and not caller.is_member(project_id):
        raise NoAccess(
            f"Project {project_id} is {project.mode}: only its members and admins can propose changes."
        )


def lock_project(project_id: str) -> None:
    """Locks the project before its parts. The checks of the project begin with the changes themselves."""
    list(Project.objects.select_for_update(no_key=True).filter(id=project_id).order_by("id"))


def check_author(request: ChangeRequest, caller: Caller) -> None:
    if not is_author(request, caller):
        raise NoAccess(f"Change request {request.pk} is {request.author_name}'s: only they can do that.")


def is_author(request: ChangeRequest, caller: Caller) -> bool:
    if request.author_id is not None:
        return request.author_id == caller.id
    return caller.id is None and request.author_name == caller.name


def may_edit(request: ChangeRequest, caller: Caller) -> bool:
    """Whether the caller may edit its changes and its title."""
    return request.state in OPEN and (caller.is_admin or is_author(request, caller))


_DONE = {"apply": State.APPLIED, "reject": State.REJECTED, "cancel": State.CANCELLED}
"""The final state of each of these actions."""


def check_state(request: ChangeRequest, verb: str, *states: State) -> None:
    """Raises Conflict if another user was faster, and InvalidOperation for any other state."""
    if request.state not in states:
        if request.state == _DONE.get(verb):
            raise Conflict(f"Change request {request.pk} is already in state {request.state}.")
        needed = " or ".join(states)
        raise InvalidOperation(
            f"Change request {request.pk} is in state {request.state}: to {verb} it, it must be in state {needed}."
        )
