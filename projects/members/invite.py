"""Invites people and groups to a project: grants a role there, and creates an account for somebody new."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import ValidationError
from flagadmin.core.wording import choices
from groups.access import Caller
from groups.login.invitations import create_first_link
from groups.login.mail import send_invitation
from groups.models import Group, Role, User
from groups.people.actions import invite_person
from groups.roles.actions import limit_role
from projects.console import project_url
from projects.members.actions import Holders, add_roles, lock_project
from projects.members.holders import find_holder
from projects.models import Project, ProjectEnvironment


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """``who``: user name, email address, or ``group: NAME``. ``role``: id of a project role.

    ``environments``: to which the role is limited; empty for the whole role. ``name``: the full name of somebody new.
    """

    who: str
    role: int
    environments: Sequence[str] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Invited:
    """``link``: the path of a one-time link, for a new account that chooses a password."""

    holder: User | Group
    role: Role
    is_new: bool = False
    link: str = ""

    @property
    def kind(self) -> str:
        return "group" if isinstance(self.holder, Group) else "user"


@transactional
def invite(project_id: str, invitation: Invitation, *, caller: Caller) -> Invited:
    """Grants the role. An unknown email address gets an account without a root role.

    Raises NotFound, NoAccess, ValidationError.
    """
    project = lock_project(project_id, caller)
    holder = find_holder(invitation.who, "who")
    if isinstance(holder, User) and not holder.is_active:
        raise ValidationError.at("who", f"{holder} is disabled. An admin can enable the account.")
    if holder is None and "@" not in invitation.who:
        message = (
            f"Account or group {invitation.who.strip()} not found. Invite somebody new by email address."
        )
        raise ValidationError.at("who", message)
    role = _find_role(project, invitation, caller)
    is_new = holder is None
    if holder is None:
        holder = invite_person(
            invitation.who.strip(), name=invitation.name, project=project.pk, caller=caller
        )
    invited = Invited(holder, role, is_new)
    add_roles(project.pk, [Holders(invited.kind, (holder.pk,), "who")], [role.pk], caller=caller)
    if not isinstance(holder, User) or not is_new or not settings.PASSWORD_LOGIN:
        return invited
    return Invited(holder, role, is_new, create_first_link(holder, then=project_url(project.pk)))


def mail_invitation(invited: Invited, project: Project, *, caller: Caller) -> bool:
    """Sends somebody new their link, if this installation sends e-mail. Returns whether the mail server took it."""
    if not invited.link or not isinstance(invited.holder, User):
        return False
    return send_invitation(invited.holder, invited.link, by=caller.name, project=project.name)


def _find_role(project: Project, invitation: Invitation, caller: Caller) -> Role:
    role = Role.objects.for_projects().filter(pk=invitation.role).first()
    if role is None:
        names = Role.objects.for_projects().values_list("name", flat=True)
        raise ValidationError.at(
            "role", f"Project role {invitation.role} not found. Available: {choices(names)}."
        )
    links = ProjectEnvironment.objects.filter(project=project)
    offered = links.order_by("environment__sort_order", "environment_id").values_list(
        "environment_id", flat=True
    )
    if unknown := sorted(set(invitation.environments) - {*offered}):
        message = f"Environment {unknown[0]} not found in {project.pk}. Available: {choices(offered)}."
        raise ValidationError.at("environments", message)
    places = [name for name in offered if name in invitation.environments]
    return limit_role(role, places, project=project.pk, caller=caller) if places else role
