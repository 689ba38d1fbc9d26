"""Reads from Unleash's database what its API does not show. The shapes are rows of its tables."""

from base64 import urlsafe_b64decode
from binascii import Error as NotBase64
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from importer.moving.reading.database import SourceDatabase
from importer.moving.reading.shapes import Shape


class ProjectRow(Shape):
    id: str
    archived_at: datetime | None = None


class UserRow(Shape):
    id: int
    username: str | None = None
    name: str | None = None
    email: str | None = None
    password_hash: str | None = None
    seen_at: datetime | None = None
    deleted_at: datetime | None = None
    is_service: bool = False
    is_system: bool = False


class RoleRow(Shape):
    id: int
    name: str
    description: str = ""
    type: str


class RolePermissionRow(Shape):
    role_id: int
    permission: str | None = None
    environment: str | None = None


class HeldRole(Shape):
    """A role of a person, or of a group. ``project`` matters for roles of projects alone."""

    role_id: int
    user_id: int = 0
    group_id: int = 0
    project: str = ""


class GroupRow(Shape):
    id: int
    name: str
    description: str = ""
    mappings_sso: Any = None
    root_role_id: int | None = None


class GroupUserRow(Shape):
    group_id: int
    user_id: int


class TokenRow(Shape):
    secret: str
    verifier: str | None = None

    @property
    def digest(self) -> str | None:
        """SHA-256 of the secret in hexadecimal, as tokens are stored here."""
        try:
            raw = urlsafe_b64decode(f"{self.verifier or ''}==")
        except (NotBase64, ValueError):
            return None
        return raw.hex() if len(raw) == 32 else None


class PersonalTokenRow(Shape):
    secret: str
    user_id: int
    description: str = ""
    expires_at: datetime | None = None
    seen_at: datetime | None = None


class MilestoneSegmentRow(Shape):
    milestone_strategy_id: str
    segment_id: int


class FavoriteRow(Shape):
    user_id: int
    feature: str = ""
    project: str = ""


@dataclass(slots=True)
class Hidden:
    """Rows of an open database. Usage, dates and events are copied from it when they are written."""

    database: SourceDatabase
    users: dict[int, UserRow]
    roles: dict[int, RoleRow]
    permissions: dict[int, list[RolePermissionRow]]
    held: list[HeldRole]
    """The roles of people and groups. Those in a project are of type ``project`` or ``custom``."""
    groups: list[GroupRow]
    members: dict[int, list[int]]
    tokens: dict[str, TokenRow]
    personal_tokens: list[PersonalTokenRow]
    favorites: list[FavoriteRow]

    def find_root_role(self, user_id: int) -> int | None:
        ids = (held.role_id for held in self.held if held.user_id == user_id)
        roots = (key for key in ids if key in self.roles and self.roles[key].type in ("root", "root-custom"))
        return min(roots, default=None)
