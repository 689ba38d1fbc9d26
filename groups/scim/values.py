"""Maps SCIM resources to account and group fields."""

from typing import Any

from flagadmin.core.http.ids import is_id
from groups.people.actions import AccountChanges
from groups.scim.documents import WORK
from groups.scim.errors import ScimRefused
from groups.scim.resources import Name, User


def read_user(resource: User, before: User | None = None) -> AccountChanges:
    """Reads the values of an account with this resource. `before` says which name was changed, if they differ."""
    parts = {
        key: value
        for key, value in (
            ("givenName", resource.name and resource.name.given_name),
            ("familyName", resource.name and resource.name.family_name),
        )
        if value
    }
    changes: AccountChanges = {
        "username": (resource.user_name or "").strip(),
        "name": _read_full_name(resource, before),
        "email": _read_address(resource),
        "external_id": resource.external_id,
        "scim_name": parts or None,
    }
    if resource.active is not None:
        changes["is_active"] = resource.active
    return changes


def _read_full_name(resource: User, before: User | None) -> str:
    """The display name, or the name as formatted, or its parts; what was changed wins over what was not."""
    candidates = _list_names(resource)
    if before is not None:
        old = _list_names(before)
        changed = [new for new, was in zip(candidates, old, strict=True) if new != was and new]
        candidates = [*changed, *candidates]
    return next(filter(None, candidates), "")


def _list_names(resource: User) -> list[str]:
    name = resource.name or Name()
    parts = " ".join(filter(None, (name.given_name, name.family_name)))
    return [resource.display_name or "", name.formatted or "", parts]


def _read_address(resource: User) -> str | None:
    """The primary one, else the one for work, else the first."""
    emails = [email for email in resource.emails or () if email.value]
    emails.sort(key=lambda email: (not email.primary, (email.type or "").lower() != WORK))
    return emails[0].value if emails else None


def read_members(value: Any) -> set[int]:
    """The ids in ``[{"value": "7"}]``. Raises ScimRefused."""
    members = value if isinstance(value, list) else [value]
    ids = set()
    for member in members:
        if isinstance(member, dict):  # names of attributes have no case
            member = {name.lower(): inner for name, inner in member.items()}
            text, kind = member.get("value"), member.get("type")
        else:
            text, kind = getattr(member, "value", member), getattr(member, "type", None)
        if str(kind).lower() == "group":
            raise ScimRefused("Members are people: groups within groups are not supported.", "invalidValue")
        if not (isinstance(text, str) and is_id(text)):
            raise ScimRefused(f"{text!r:.100} is not the id of a user.", "invalidValue")
        ids.add(int(text))
    return ids
