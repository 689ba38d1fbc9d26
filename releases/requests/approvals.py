"""Determines the approvals that a request needs, from the first matching rule of its environment.

Finds change requests, and locks those that are changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import sqrt
from typing import Any, NamedTuple

from django.utils import timezone

from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import (
    AppError,
    Conflict,
    InvalidOperation,
    NoAccess,
    NotFound,
    list_some,
    pluralize,
)
from flagadmin.core.lists.charts import format_percent
from groups.access import Caller
from playground.comparison.who_changes import MAX_USERS
from projects.access import access_project
from projects.definitions import read_definitions
from projects.drafts import FlagEdit, NewFlagEdit
from projects.models import FlagTag, Project, ProjectEnvironment
from projects.projects.required_comments import (
    BREAKS_EXPECTATION,
    CHANGES_SAVED_CONTEXT,
    CHANGES_USERS,
    ONLY_TURNS_OFF,
    TOUCHES_TAG,
    describe_rule,
)
from releases.changes import KINDS
from releases.derive import derive_changes
from releases.models import Change, ChangeRequest
from releases.requests.approvers import approver_group_names, find_strictest, list_approvers
from releases.requests.impact import list_descendants, list_touched_flags, measure_impact


class Verdict(NamedTuple):
    """A rule, and whether it matches. ``why`` is a sentence. The last one is the default."""

    number: int
    words: str
    approvals: int
    holds: bool
    why: str

    @property
    def needs(self) -> str:
        return pluralize(self.approvals, "approval") if self.approvals else "no approval"


class _Facts(NamedTuple):
    request: ChangeRequest
    impact: Mapping[str, Any]

    def changes_users(self, rule: Mapping[str, Any]) -> tuple[bool, str]:
        generated, own = self.impact, self.impact.get("own")
        named = (generated.get("named") or {}).get("changed", 0)
        percent, words = _largest_share(generated), _share_words(generated, named)
        if named:
            words = " and ".join(
                [pluralize(named, "named user"), *([words] if generated["changed"] > named else [])]
            )
        if (users := generated["users"]) < MAX_USERS:
            words += (
                f", and at most {format_percent(percent)}: so many values leave time for {users:,} users only"
            )
        most = _share_of_most(generated)
        if most > percent:
            percent = most
            words += f", and {format_percent(most)} of those who meet the conditions of a strategy"
        if breached := generated.get("ifBreached"):
            worst = max(_largest_share(breached), _share_of_most(breached))
            percent = max(percent, worst)
            words += f", and {format_percent(worst)} if a safeguard is breached"
        if own:
            percent = max(percent, _share(own["changed"], own["users"]))
            words += f", and {own['changed']:,} of {own['users']:,} users in the file of {own['by']}"
        return percent > rule["percent"], f"This changes {words}."

    def changes_saved_context(self, rule: Mapping[str, Any]) -> tuple[bool, str]:
        certain, worst = ([saved["name"] for saved in impact["savedContexts"]] for impact in self._impacts)
        if certain or not worst:
            return bool(certain), f"{', '.join(certain[:3])} changes." if certain else "None changes."
        return True, f"{', '.join(worst[:3])} changes if a safeguard is breached."

    def breaks_expectation(self, rule: Mapping[str, Any]) -> tuple[bool, str]:
        certain, worst = (impact["brokenExpectations"] for impact in self._impacts)
        if certain or not worst:
            return bool(certain), f"This breaks {certain}." if certain else "This breaks none."
        return True, f"This breaks {worst} if a safeguard is breached."

    @property
    def _impacts(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The certain impact, and the one after a breached safeguard."""
        return self.impact, self.impact.get("ifBreached") or self.impact

    def touches_tag(self, rule: Mapping[str, Any]) -> tuple[bool, str]:
        kind, _, value = rule["tag"].partition(":")
        touched = list_touched_flags(self.request)
        tagged = FlagTag.objects.filter(
            tag_type=kind, value=value, flag__name__in=touched | list_descendants(touched)
        )
        names = list(tagged.order_by("flag__name").values_list("flag__name", flat=True))
        if not names:
            return False, "No flag here is, nor one that depends on these."
        name = next((each for each in names if each in touched), "")
        return True, f"{name} is." if name else f"{names[0]} is, which depends on a flag that this changes."

    def only_turns_off(self, rule: Mapping[str, Any]) -> tuple[bool, str]:
        for change in self.request.changes.all():
            if not KINDS[change.action].turns_off(change.payload):
                return False, "Does not apply."
        if self.impact["onlyTurnsOff"]:
            return True, "It only turns flags off."
        return False, "It changes a result other than to off."


def _share(changed: int, users: int) -> float:
    return 100 * float(changed) / max(1, users)


def _largest_share(impact: Mapping[str, Any]) -> float:
    """The share of the generated users who change or, of fewer than usual, the largest one that may hide behind it.

    The author can add values to conditions until there is only time for 100 users, and try groups until 10 % of all
    users are hardly any of these: so the bound is that of a chance of one in three million (Wilson's, five deviations).
    """
    changed, users = impact["changed"], impact["users"]
    if users >= MAX_USERS:
        return _share(changed, users)
    return min(100.0, _share(changed + 12.5 + 5 * sqrt(changed + 6.25), users))


def _share_of_most(impact: Mapping[str, Any]) -> float:
    """The largest share of the users who meet the conditions of a strategy: real users may all meet them."""
    most = impact.get("mostAffected") or {"changed": 0, "users": 0}
    return _share(most["changed"], most["users"])


def _share_words(impact: Mapping[str, Any], named: int) -> str:
    """The percentage without the named users, whose number is added."""
    return format_percent(_share(impact["changed"] - named, impact["users"]))


_CHECKS = {
    ONLY_TURNS_OFF: _Facts.only_turns_off,
    CHANGES_USERS: _Facts.changes_users,
    CHANGES_SAVED_CONTEXT: _Facts.changes_saved_context,
    BREAKS_EXPECTATION: _Facts.breaks_expectation,
    TOUCHES_TAG: _Facts.touches_tag,
}


def judge(request: ChangeRequest, impact: Mapping[str, Any] | None) -> list[Verdict]:
    """The environment's rules applied to the request's effect; [] without a policy.

    An effect that cannot be measured needs as many approvals as the strictest rule.
    """
    links = ProjectEnvironment.objects.needing_requests()
    link = links.filter(project=request.project_id, environment=request.environment_id).first()
    if link is None or link.required_approvals is None:
        return []
    if impact is None:
        why = "Who changes cannot be measured, so the strictest rule counts." if link.approval_rules else ""
        return [Verdict(0, "everything", find_strictest(link), True, why)]
    return list(_verdicts(link, _Facts(request, impact)))


def _verdicts(link: ProjectEnvironment, facts: _Facts) -> Iterator[Verdict]:
    is_decided = False
    for number, rule in enumerate(link.approval_rules, 1):
        needed = rule["requiredApprovals"]
        if is_decided:
            holds, why = False, "Not needed."
        elif rule["condition"] == CHANGES_USERS and (unmeasured := facts.impact.get("unmeasured")):
            holds, needed = True, find_strictest(link)
            why = f"This cannot be measured, so the strictest rule counts: {unmeasured[0]}."
        else:
            holds, why = _CHECKS[rule["condition"]](facts, rule)
        is_decided = is_decided or holds
        yield Verdict(number, describe_rule(rule), needed, holds, why)
    words = "everything else" if link.approval_rules else "everything"
    why = "Not needed." if is_decided else ""
    yield Verdict(
        len(link.approval_rules) + 1, words, link.required_approvals or 0, holds=not is_decided, why=why
    )


def count_needed(request: ChangeRequest, impact: Mapping[str, Any] | None) -> int:
    """The number of required approvals; 0 if the environment no longer requires requests."""
    return next((verdict.approvals for verdict in judge(request, impact) if verdict.holds), 0)


def foresee(edits: Sequence[FlagEdit | NewFlagEdit], caller: Caller) -> tuple[Verdict, str] | None:
    """The rule for a request with these edits of one environment, and who may approve it; None if it needs no request,
    or cannot be made.
    """
    flags = [edit for edit in edits if isinstance(edit, FlagEdit)]
    places = {(edit.project, edit.environment) for edit in edits}
    if len(places) != 1 or not flags or not (request := _make_request(*places.pop(), flags, caller)):
        return None
    try:
        verdicts = judge(request, measure_impact(request, now=timezone.now()).document)
    except AppError:
        return None
    verdict = next((verdict for verdict in verdicts if verdict.holds), None)
    return verdict and (verdict, _name_approvers(request))


def _make_request(
    project_id: str, environment: str, edits: Sequence[FlagEdit], caller: Caller
) -> ChangeRequest | None:
    """A request that is not stored."""
    place = {"project_id": project_id, "environment_id": environment}
    if not ProjectEnvironment.objects.needing_requests().filter(**place).exists():
        return None
    used = set(chain.from_iterable(edit.draft.used_segments() for edit in edits))
    before = after = read_definitions(
        [project_id], environment, flags=[edit.flag for edit in edits], segments=used
    )
    for edit in edits:
        after = edit.draft.apply_to(after)
    proposed = derive_changes(before, after, {edit.flag for edit in edits if edit.draft.archived})
    if not proposed:
        return None
    request, changes = ChangeRequest(pk=0, author_id=caller.id, **place), Change.objects.none()
    changes._result_cache = [
        Change(feature=each.feature, action=each.action, payload=each.payload) for each in proposed
    ]
    # What reads the changes finds these.
    request._prefetched_objects_cache = {"changes": changes}  # type: ignore[attr-defined]
    return request


def _name_approvers(request: ChangeRequest) -> str:
    """``members of Reviewers``, or ``Maria Olsen, Lukas Weber``; "" if only the author may approve."""
    place = request.project_id, request.environment_id
    if groups := approver_group_names(*place):
        return f"members of {list_some(groups, 3)}"
    return list_some(
        [user.display_name for user in list_approvers(*place) if user.pk != request.author_id], 3
    )


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
