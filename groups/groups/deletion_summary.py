"""Describes what users lose when a group is deleted."""

from flagadmin.core.lists.pages import MAX_NAMES
from flagadmin.core.wording import join_words, list_some, pluralize
from groups.groups.actions import GroupDeletion
from groups.models import Group

NUMBERS = ("None", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")


def describe_deletion(plan: GroupDeletion) -> str:
    """Describes losses, such as ``Beta has 3 members. They lose Member in shop. One of them has no other access …``"""
    group, count = plan.group, len(plan.members)
    if not count:
        return f"{group.name} has no members. Nobody loses access. {_describe_flags(group)}".rstrip()
    has = f"{group.name} has {pluralize(count, 'member')}."
    return " ".join(
        filter(None, (has, _describe_roles(plan), _describe_losses(plan), _describe_flags(group)))
    )


def list_members(plan: GroupDeletion) -> list[tuple[str, str]]:
    """(member, note) for up to MAX_NAMES members; those who lose all access come first."""
    losing_ids = {user.pk for user in plan.losing_all}
    hidden = len(plan.members) - MAX_NAMES
    members = sorted(plan.members, key=lambda user: user.pk not in losing_ids)
    lines = [
        (
            user.display_name,
            "will see no project" if user.pk in losing_ids else "disabled" * (not user.is_active),
        )
        for user in members[:MAX_NAMES]
    ]
    return [*lines, (f"and {hidden:,} more", "")] if hidden > 0 else lines


def _describe_roles(plan: GroupDeletion) -> str:
    roles = [f"{grant.role} in {grant.project_id}" for grant in plan.grants]
    if plan.group.root_role is not None:
        roles.insert(0, f"{plan.group.root_role} everywhere")
    if not roles:
        return "It gives them no role, so nobody loses access."
    lost = list_some(roles, MAX_NAMES) if len(roles) > MAX_NAMES else join_words(roles)
    return f"They lose {lost}."


def _describe_losses(plan: GroupDeletion) -> str:
    count, all_of = len(plan.losing_all), len(plan.members)
    if not count:
        return ""
    if all_of == 1:
        return "That member has no other access and will see no project."
    number = NUMBERS[count] if count < len(NUMBERS) else str(count)
    has = "has" if count == 1 else "have"
    return f"{number} of them {has} no other access and will see no project."


def _describe_flags(group: Group) -> str:
    owned = group.owned_flags.count()
    return f"It owns {pluralize(owned, 'flag')}, which will have no owner." if owned else ""
