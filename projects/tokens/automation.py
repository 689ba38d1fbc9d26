"""Creates everything that a program needs to change flags in one environment, in one transaction.

That is a service account, a role with permissions limited to the environment, its grant in each project, and a
token that acts as the account.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count

from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import Problem, check_problems
from flagadmin.core.wording import join_words
from groups.access import Caller
from groups.models import ApiToken, Role
from groups.models.roles import HeldPermission
from groups.people.actions import NewAccount, create_account
from groups.people.personal_tokens import create_personal_token
from groups.permissions import Permission
from groups.roles.actions import create_role
from projects.access import describe_unknown_environment
from projects.members.actions import Holders, add_roles
from projects.models import Environment

# Changes that a token may make: in words, and the permissions needed.
CHANGES: dict[str, tuple[str, tuple[Permission, ...]]] = {
    "toggle": ("turn flags on and off", (Permission.UPDATE_FEATURE_ENVIRONMENT,)),
    "strategies": (
        "add, edit and delete strategies",
        (
            Permission.CREATE_FEATURE_STRATEGY,
            Permission.UPDATE_FEATURE_STRATEGY,
            Permission.DELETE_FEATURE_STRATEGY,
        ),
    ),
    "variants": ("edit variants", (Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS,)),
}
SHORT = {"toggle": "Switch flags", "strategies": "Edit strategies", "variants": "Edit variants"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAutomation:
    """``environment`` None means all environments; ``may`` names some of CHANGES."""

    name: str
    projects: tuple[str, ...]
    environment: str | None
    may: tuple[str, ...]
    expires_at: datetime | None = None


@transactional
def create_automation(new: NewAutomation, *, caller: Caller) -> tuple[ApiToken, str]:
    """Creates the service account ``new.name`` with its role and token. Returns the token and its secret.

    A role with exactly these permissions is used again. Raises NoAccess, ValidationError, NameExists, NotFound.
    """
    caller.check(Permission.ADMIN)
    check_problems(_list_problems(new))
    account = create_account(NewAccount(username=new.name, is_service=True), caller=caller)
    role = _find_or_create_role(new, caller)
    for project in sorted(set(new.projects)):
        add_roles(project, [Holders("user", (account.pk,))], [role.pk], caller=caller)
    return create_personal_token(account, name=new.name, expires_at=new.expires_at, caller=caller)


def describe_new_scope(new: NewAutomation) -> str:
    """``ci may turn flags on and off in production of checkout.``"""
    where = f"in {new.environment}" if new.environment else "in all environments"
    return f"{new.name} may {join_words(CHANGES[each][0] for each in new.may)} {where} of {join_words(new.projects)}."


def _list_problems(new: NewAutomation) -> Iterable[Problem]:
    if not new.projects:
        yield Problem("projects", "Choose the projects in which it may change flags.")
    if not new.may or not set(new.may) <= CHANGES.keys():
        yield Problem("may", "Choose what it may change.")
    if new.environment is not None and not Environment.objects.filter(name=new.environment).exists():
        yield Problem("environment", describe_unknown_environment(new.environment))


def _find_or_create_role(new: NewAutomation, caller: Caller) -> Role:
    permissions = [
        HeldPermission(each.value, new.environment) for change in new.may for each in CHANGES[change][1]
    ]
    return _find_same_role(set(permissions)) or create_role(
        _free_name(new),
        description=f"For service accounts. {join_words(SHORT[each] for each in new.may)}, nothing else.",
        type=Role.Type.CUSTOM.value,
        permissions=permissions,
        caller=caller,
    )


def _find_same_role(permissions: set[HeldPermission]) -> Role | None:
    permission = permissions.copy().pop()
    roles = Role.objects.filter(
        type=Role.Type.CUSTOM,
        permissions__permission=permission.permission,
        permissions__environment=permission.environment,
    )
    return next((role for role in roles.order_by("id") if set(role.held_permissions()) == permissions), None)


def _free_name(new: NewAutomation) -> str:
    everything: Sequence[str] = tuple(CHANGES)
    purpose = (
        "Change flags" if set(new.may) == set(everything) else join_words(SHORT[each] for each in new.may)
    )
    name = f"{purpose} in {new.environment or 'all environments'}"
    used_names = set(Role.objects.filter(name__startswith=name).values_list("name", flat=True))
    names = (name if number == 1 else f"{name} ({number})" for number in count(1))
    return next(each for each in names if each not in used_names)
