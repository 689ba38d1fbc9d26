"""Says how many approvals a request needs, by the first rule of its environment that holds, and who may give them."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from flagadmin.core.errors import NoAccess
from flagadmin.core.lists.charts import format_percent
from flagadmin.core.wording import choices, pluralize
from groups.access import NOTHING, Caller, read_rights_of_users
from groups.models import Group, GroupMembership, Role, User
from groups.permissions import Permission
from groups.roles.holders import find_holders
from projects.models import FlagTag, ProjectEnvironment
from projects.projects.approval_rules import (
    BREAKS_EXPECTATION,
    CHANGES_SAVED_CONTEXT,
    CHANGES_USERS,
    ONLY_TURNS_OFF,
    TOUCHES_TAG,
    describe_rule,
)
from releases.models import ChangeRequest
from releases.requests.impact import list_touched_flags

APPROVE = Permission.APPROVE_CHANGE_REQUEST
TURNS_OFF = frozenset({"archiveFeature", "deleteStrategy"})
"""Actions that turn a flag off for some, besides `updateEnabled`; what that does to others is measured."""


class Verdict(NamedTuple):
    """A rule, and whether it holds. ``why`` is a sentence. The last one is what holds if no other does."""

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

    @property
    def percent(self) -> float:
        return 100 * float(self.impact["changed"]) / max(1, self.impact["users"])

    def changes_users(self, rule: Mapping[str, Any]) -> tuple[bool, str]:
        return self.percent > rule["percent"], f"This changes {format_percent(self.percent)}."

    def changes_saved_context(self, rule: Mapping[str, Any]) -> tuple[bool, str]:
        names = [saved["name"] for saved in self.impact["savedContexts"]]
        return bool(names), f"{', '.join(names[:3])} changes." if names else "None changes."

    def breaks_expectation(self, rule: Mapping[str, Any]) -> tuple[bool, str]:
        broken = self.impact["brokenExpectations"]
        return bool(broken), f"This breaks {broken}." if broken else "This breaks none."

    def touches_tag(self, rule: Mapping[str, Any]) -> tuple[bool, str]:
        kind, _, value = rule["tag"].partition(":")
        tagged = FlagTag.objects.filter(
            tag_type=kind, value=value, flag__name__in=list_touched_flags(self.request)
        )
        name = tagged.order_by("flag__name").values_list("flag__name", flat=True).first()
        return name is not None, f"{name} is." if name else "No flag here is."

    def only_turns_off(self, rule: Mapping[str, Any]) -> tuple[bool, str]:
        for change in self.request.changes.all():
            off = change.action == "updateEnabled" and not change.payload["enabled"]
            if not off and change.action not in TURNS_OFF:
                return False, "It also does something else."
        if self.impact["onlyTurnsOff"]:
            return True, "It only turns flags off."
        return False, "It changes a result other than to off."


_CHECKS = {
    ONLY_TURNS_OFF: _Facts.only_turns_off,
    CHANGES_USERS: _Facts.changes_users,
    CHANGES_SAVED_CONTEXT: _Facts.changes_saved_context,
    BREAKS_EXPECTATION: _Facts.breaks_expectation,
    TOUCHES_TAG: _Facts.touches_tag,
}


def judge(request: ChangeRequest, impact: Mapping[str, Any] | None) -> list[Verdict]:
    """The rules of the request's environment for what it does; [] without a policy.

    What cannot be measured needs as many approvals as the strictest rule asks for.
    """
    links = ProjectEnvironment.objects.needing_requests()
    link = links.filter(project=request.project_id, environment=request.environment_id).first()
    if link is None or link.required_approvals is None:
        return []
    if impact is None:
        numbers = [link.required_approvals, *(rule["requiredApprovals"] for rule in link.approval_rules)]
        why = "Who changes cannot be measured, so the strictest rule counts." if len(numbers) > 1 else ""
        return [Verdict(0, "everything", max(numbers), True, why)]
    return list(_verdicts(link, _Facts(request, impact)))


def _verdicts(link: ProjectEnvironment, facts: _Facts) -> Iterator[Verdict]:
    is_decided = False
    for number, rule in enumerate(link.approval_rules, 1):
        holds, why = (False, "Not reached.") if is_decided else _CHECKS[rule["condition"]](facts, rule)
        is_decided = is_decided or holds
        yield Verdict(number, describe_rule(rule), rule["requiredApprovals"], holds, why)
    words = "everything else" if link.approval_rules else "everything"
    needed = link.required_approvals or 0
    yield Verdict(
        len(link.approval_rules) + 1, words, needed, not is_decided, "Not reached." if is_decided else ""
    )


def count_needed(request: ChangeRequest, impact: Mapping[str, Any] | None) -> int:
    """0 where the environment no longer asks for requests."""
    return next((verdict.approvals for verdict in judge(request, impact) if verdict.holds), 0)


def check_may_approve(project_id: str, environment: str, caller: Caller) -> None:
    """Raises NoAccess."""
    caller.check(APPROVE, project=project_id, environment=environment)
    if not may_approve(project_id, environment, caller):
        names = choices(approver_group_names(project_id, environment))
        raise NoAccess(
            f"Only members of {names} may approve changes of {environment} in project {project_id}."
        )


def may_approve(project_id: str, environment: str, caller: Caller) -> bool:
    """Whether the caller has the permission and, where the environment names groups, is a member of one: admins too."""
    if not caller.can(APPROVE, project=project_id, environment=environment):
        return False
    groups = _approver_groups(project_id, environment)
    return not groups or GroupMembership.objects.filter(group__in=groups, user=caller.id).exists()


def list_approvers(project_id: str, environment: str) -> list[User]:
    """The people who may approve there, by user name. Three queries, however many people there are."""
    roles = Role.objects.filter(permissions__permission__in=(APPROVE, Permission.ADMIN))
    people = find_holders(roles).people().filter(is_active=True).order_by("username")
    if groups := _approver_groups(project_id, environment):
        people = people.filter(pk__in=GroupMembership.objects.filter(group__in=groups).values("user"))
    rights = read_rights_of_users(user.pk for user in people)
    return [user for user in people if rights.get(user.pk, NOTHING).allow(APPROVE, project_id, environment)]


def approver_group_names(project_id: str, environment: str) -> list[str]:
    """The groups whose members may approve, by name; [] for everybody with the permission."""
    ids = _approver_groups(project_id, environment)
    names = list(Group.objects.filter(pk__in=ids).order_by("name").values_list("name", flat=True))
    return names or ["a deleted group"] * bool(ids)


def _approver_groups(project_id: str, environment: str) -> list[int]:
    links = ProjectEnvironment.objects.filter(project=project_id, environment=environment)
    return links.values_list("approver_groups", flat=True).first() or []
