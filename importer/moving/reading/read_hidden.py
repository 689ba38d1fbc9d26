"""Reads what the database of Unleash has and its API does not show."""

from collections import defaultdict

from importer.moving.reading.database import SourceDatabase
from importer.moving.reading.hidden import (
    FavoriteRow,
    GroupRow,
    GroupUserRow,
    HeldRole,
    Hidden,
    PersonalTokenRow,
    ProjectRow,
    RolePermissionRow,
    RoleRow,
    TokenRow,
    UserRow,
)
from importer.moving.reading.installation import HISTORY, Installation
from importer.moving.reading.left import GIVEN_ANEW, note_tables
from importer.moving.reading.read_releases import add_releases
from importer.moving.reading.shapes import SourcePerson


def list_projects(database: SourceDatabase) -> list[str]:
    """Lists the projects that are not archived."""
    return [row.id for row in database.read("projects", ProjectRow) if row.archived_at is None]


def add_hidden(installation: Installation, database: SourceDatabase) -> None:
    """Adds what the database has. People are those of its table: the API knows no more of them."""
    users = [row for row in database.read("users", UserRow) if not row.is_system and row.deleted_at is None]
    permissions, members = defaultdict(list), defaultdict(list)
    for permission in database.read("role_permission", RolePermissionRow):
        permissions[permission.role_id].append(permission)
    for member in database.read("group_user", GroupUserRow):
        members[member.group_id].append(member.user_id)
    hidden = Hidden(
        database,
        users={row.id: row for row in users},
        roles={row.id: row for row in database.read("roles", RoleRow)},
        permissions=permissions,
        held=[*database.read("role_user", HeldRole), *database.read("group_role", HeldRole)],
        groups=database.read("groups", GroupRow),
        members=members,
        tokens={row.secret: row for row in database.read("api_tokens", TokenRow)},
        personal_tokens=database.read("personal_access_tokens", PersonalTokenRow),
        favorites=[
            *database.read("favorite_features", FavoriteRow),
            *database.read("favorite_projects", FavoriteRow),
        ],
    )
    installation.hidden = hidden
    installation.people = [
        SourcePerson(
            id=row.id,
            username=row.username,
            name=row.name,
            email=row.email,
            root_role=hidden.find_root_role(row.id),
        )
        for row in users
        if not row.is_service
    ]
    installation.left = [line for line in installation.left if line.subject != HISTORY]
    installation.cannot(HISTORY, f"usage older than 30 days stays there. {GIVEN_ANEW}")
    add_releases(installation, database)
    note_tables(installation, database)
    for token in installation.tokens:
        if token.secure and (stored := hidden.tokens.get(token.secret)) is not None:
            token.digest = stored.digest
