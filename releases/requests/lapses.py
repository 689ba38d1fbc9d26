"""Determines which approvals do not count, and why: each needs a distinct person who still has the permission.

Evaluated anew each time: when a request is approved, scheduled, applied or due, and at the steps of its plan.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from django.utils.functional import cached_property

from flagadmin.core.errors import choices
from groups.access import NOTHING, Caller, Rights, read_rights_of_users
from groups.models import GroupMembership, User
from groups.people.personal_tokens import Tie, Ties, read_origins, say_who_confirms
from releases.models import ChangeRequest, Review
from releases.requests.approvers import APPROVE, approver_group_names, find_approver_groups

AFTERWARDS = "They do not count as two people until somebody else has confirmed it."


def find_lapses(requests: Sequence[ChangeRequest]) -> dict[int, str]:
    """Why approvals of the requests do not count, by the reviews' ids. A few queries for all requests."""
    reviews = {request: [each for each in request.reviews.all() if each.approved] for request in requests}
    judge = _Judge(reviews)
    return {
        review.pk: why
        for request, given in reviews.items()
        for review, why in judge.list_lapses(request, given)
    }


def explain_lapses(request: ChangeRequest) -> str:
    """Sentences about its approvals that do not count; "" if all do."""
    return " ".join(find_lapses([request]).values())


def count_approvals(request: ChangeRequest) -> int:
    """The number of approvals that count."""
    lapsed = find_lapses([request])
    return sum(review.approved and review.pk not in lapsed for review in request.reviews.all())


def find_author_tie(request: ChangeRequest, caller: Caller) -> str:
    """Why the caller and the author may be one person; "" if they are two or the caller is the author."""
    if caller.id is None or request.author_id is None or caller.id == request.author_id:
        return ""
    tie = Ties([caller.id, request.author_id]).find_tie(caller.id, request.author_id)
    if tie is None or _may_approve_own(request.author_id, caller, tie):
        return ""
    return _say_tie(tie, "the author of this request")


def find_origins(requests: Iterable[ChangeRequest]) -> dict[int, str]:
    """``invited by the author``, by the ids of reviews, even if the account has been confirmed."""
    pairs = {
        review.pk: (review.author_id, request.author_id)
        for request in requests
        for review in request.reviews.all()
        if review.author_id and request.author_id
    }
    origins = read_origins(*zip(*pairs.values(), strict=True)) if pairs else {}
    return {pk: f"{origins[pair]} by the author" for pk, pair in pairs.items() if pair in origins}


def is_program(caller: Caller) -> bool:
    """Whether the caller is an API token or a service account instead of a person."""
    return caller.token is not None if caller.user is None else caller.user.is_service


class _Judge:
    def __init__(self, reviews: dict[ChangeRequest, list[Review]]) -> None:
        self.requests = [request for request, given in reviews.items() if given]
        self.ids = {review.author_id for given in reviews.values() for review in given if review.author_id}

    @cached_property
    def people(self) -> dict[int, User]:
        return User.objects.in_bulk(self.ids)

    @cached_property
    def rights(self) -> dict[int, Rights]:
        return read_rights_of_users(self.ids)

    @cached_property
    def ties(self) -> Ties:
        return Ties(self.ids | {request.author_id for request in self.requests if request.author_id})

    @cached_property
    def groups(self) -> dict[tuple[str, str], list[int]]:
        places = {(request.project_id, request.environment_id) for request in self.requests}
        return {place: find_approver_groups(*place) for place in places}

    @cached_property
    def members(self) -> dict[int, set[int]]:
        rows = GroupMembership.objects.filter(user__in=self.ids).values_list("group_id", "user_id")
        members: dict[int, set[int]] = defaultdict(set)
        for group, user in rows:
            members[group].add(user)
        return members

    def list_lapses(self, request: ChangeRequest, given: Iterable[Review]) -> Iterator[tuple[Review, str]]:
        counted: list[int] = []
        for review in given:
            why = self._explain(request, review) or self._explain_twice(review, counted)
            if why:
                yield review, f"The approval of {review.author_full_name} does not count: {why}"
            elif review.author_id is not None:
                counted.append(review.author_id)

    def _explain(self, request: ChangeRequest, review: Review) -> str:
        user = self.people.get(review.author_id or 0)
        if review.by_system:
            return ""
        if user is None:
            return "no such person exists any more."
        if user.is_service:
            return "it is a service account."
        if not user.is_active:
            return "they can no longer log in."
        caller = Caller(user=user, rights=self.rights.get(user.pk, NOTHING))
        return self._explain_rights(request, caller) or self._explain_author(request, caller)

    def _explain_rights(self, request: ChangeRequest, caller: Caller) -> str:
        project, environment = request.project_id, request.environment_id
        if not caller.can(APPROVE, project=project, environment=environment):
            return f"they may no longer approve changes of {environment} in project {project}."
        groups = self.groups[project, environment]
        if groups and not any(caller.id in self.members[group] for group in groups):
            names = choices(approver_group_names(project, environment))
            return f"only members of {names} may approve changes of {environment} in project {project}."
        return ""

    def _explain_author(self, request: ChangeRequest, caller: Caller) -> str:
        assert caller.id is not None
        if request.author_id is None:
            return ""
        if request.author_id == caller.id:
            return "" if caller.is_admin else "it is their own request, and they are no longer an admin."
        tie = self.ties.find_tie(caller.id, request.author_id)
        if tie is None or _may_approve_own(request.author_id, caller, tie):
            return ""
        return _say_tie(tie, f"{request.author_full_name} (the author of this request)")

    def _explain_twice(self, review: Review, counted: Iterable[int]) -> str:
        for other in counted:
            if review.author_id and (tie := self.ties.find_tie(review.author_id, other)):
                return _say_tie(tie, f"{self.people[other].display_name} (who has approved it too)")
        return ""


def _may_approve_own(author: int, caller: Caller, tie: Tie) -> bool:
    """Admins may approve their own requests, and so the requests of accounts that they keep."""
    return caller.is_admin and tie.account == author


def _say_tie(tie: Tie, other: str) -> str:
    account = User.objects.get(pk=tie.account)
    return (
        f"{account.display_name} was {tie.origin}, and so they and {other} may be one person. "
        f"{AFTERWARDS} {say_who_confirms(account)}"
    )
