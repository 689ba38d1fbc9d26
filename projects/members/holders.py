"""People and groups by the names that are typed: ``ada``, ``ada@example.org``, ``group: Checkout team``."""

from django.db.models import Q, QuerySet

from flagadmin.core.errors import ValidationError
from flagadmin.core.lists.pages import MAX_OPTIONS
from groups.models import Group, User
from groups.people.choices import suggest_accounts

GROUP_PREFIX = "group: "


def name_holder(holder: User | Group | None) -> str:
    """Names the holder as ``find_holder`` reads it; "" for None."""
    return f"{GROUP_PREFIX}{holder}" if isinstance(holder, Group) else str(holder or "")


def find_holder(text: str, path: str) -> User | Group | None:
    """The account or group with this name; None if there is none.

    A group must be prefixed with ``group:`` unless no account has that name. Raises ValidationError at ``path`` for
    an empty name and for an unknown group that is called one.
    """
    name = text.strip()
    if not name:
        raise ValidationError.at(path, "Enter an email address, a user name or a group.")
    is_group = name.casefold().startswith(GROUP_PREFIX.strip())
    group_name = name[len(GROUP_PREFIX) - 1 :].strip() if is_group else name
    group = Group.objects.filter(name__iexact=group_name).order_by("id").first()
    if is_group and group is None:
        raise ValidationError.at(path, f"Group {group_name} not found.")
    return (None if is_group else User.objects.known_as(name).first()) or group


def suggest_holders() -> list[tuple[str, str]]:
    """Options for a text input: groups, and the user names of active accounts."""
    return _group_options(Group.objects.all()) + suggest_accounts()


def suggest_holders_in(project_id: str) -> list[tuple[str, str]]:
    """Groups and people with a role in the project, for those who may not see all people."""
    groups = Group.objects.filter(grants__project=project_id)
    people = (
        User.objects.people().active().filter(Q(grants__project=project_id) | Q(groups__in=groups)).distinct()
    )
    known = [(user.username, user.name) for user in people.order_by("username")[:MAX_OPTIONS]]
    return _group_options(groups.distinct()) + known


def _group_options(groups: QuerySet[Group]) -> list[tuple[str, str]]:
    names = groups.order_by("name").values_list("name", flat=True)[:MAX_OPTIONS]
    return [(f"{GROUP_PREFIX}{name}", "") for name in names]
