"""The approvals that depend on a group. The app above, which knows change requests, provides the functions."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from flagadmin.core.errors import InvalidOperation
from flagadmin.core.hook import Hook
from flagadmin.core.wording import list_some
from groups.models import Group

Place = tuple[str, str]
"""A project and one of its environments that accepts change requests."""
MAX_PLACES = 5  # in a sentence


@dataclass(frozen=True, slots=True)
class Approvals:
    """The places that name the group as approvers, and those where nobody else could approve."""

    places: Sequence[Place] = ()
    only_here: Sequence[Place] = ()


def _find_none(group_id: int) -> Approvals:
    return Approvals()


def _find_no_place(places: Collection[Place]) -> list[Place]:
    return []


find_approvals: Hook[[int], Approvals] = Hook("groups.groups.approvals.find_approvals", _find_none)
find_without_approvers: Hook[[Collection[Place]], list[Place]] = Hook(
    "groups.groups.approvals.find_without_approvers", _find_no_place
)
"""The places, among these, where nobody may approve."""


def check_approvers_without_group(group: Group) -> None:
    """Raises InvalidOperation if nobody could approve the changes of an environment without the group."""
    _refuse(find_approvals(group.pk).only_here)


def check_approvers_left(places: Collection[Place]) -> None:
    """Raises InvalidOperation if one of the places, all of which had an approver, has none left."""
    _refuse(find_without_approvers(places))


def list_places_with_approvers(group_id: int) -> list[Place]:
    """The places that name the group as approvers and have an approver."""
    places = find_approvals(group_id).places
    without = set(find_without_approvers(places))
    return [place for place in places if place not in without]


def describe_places(places: Sequence[Place]) -> str:
    """``production in project shop``."""
    return list_some([f"{environment} in project {project}" for project, environment in places], MAX_PLACES)


def _refuse(places: Sequence[Place]) -> None:
    if places:
        raise InvalidOperation(
            f"Nobody could approve changes of {describe_places(places)} any more. Name other approvers there first."
        )
