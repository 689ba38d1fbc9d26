"""Reads data from Unleash's database that its API does not show."""

from collections import defaultdict

from flagadmin.core.errors import pluralize
from importer.body.schema_errors import list_members
from importer.body.schemas import Data
from importer.moving.reading.database import (
    FavoriteRow,
    FlagEnvironmentRow,
    GroupRow,
    GroupUserRow,
    HeldRole,
    Hidden,
    PersonalTokenRow,
    ProjectRow,
    RolePermissionRow,
    RoleRow,
    SelectedTokenRow,
    SourceDatabase,
    TokenRow,
    UserRow,
)
from importer.moving.reading.installation import HISTORY, Installation, keep_known, name_variants
from importer.moving.reading.read import GIVEN_ANEW, add_releases, note_tables
from importer.moving.reading.shapes import SourceAddon, SourcePerson


def list_projects(database: SourceDatabase) -> list[str]:
    """Lists the projects that are not archived."""
    return [row.id for row in database.read("projects", ProjectRow) if row.archived_at is None]


def add_hidden(installation: Installation, database: SourceDatabase) -> None:
    """Adds the database's data. People come from its table, because the API knows no more of them."""
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
        personal_tokens=database.read("personal_access_tokens", PersonalTokenRow),
        favorites=[
            *database.read("favorite_features", FavoriteRow),
            *database.read("favorite_projects", FavoriteRow),
        ],
    )
    installation.hidden = hidden
    installation.addons = database.read("addons", SourceAddon)
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
    _add_variants(installation, database)
    _add_digests(installation, database)


def _add_digests(installation: Installation, database: SourceDatabase) -> None:
    """Adds the hashes of secrets whose beginning the API lists."""
    secure = [token for token in installation.tokens if token.secure]
    digests = {row.secret: row.digest for row in database.read("api_tokens", TokenRow)}
    selected = database.read("api_tokens_v2", SelectedTokenRow)
    unlisted = len(selected)
    for token in secure:
        token.digest = digests.get(token.secret)
        for row in selected:
            before, found, _ = token.secret.partition(row.selector)
            if found and row.selector:
                token.secret, token.digest = before + found, row.digest
                unlisted -= 1
                break
    if unlisted > 0:
        detail = "in its database alone, so it is not known what for: create new ones"
        installation.cannot(f"{pluralize(unlisted, 'token')} of the new kind", detail)


def _add_variants(installation: Installation, database: SourceDatabase) -> None:
    """Adds the variants of flags in environments that exports omit, replacing the lines about them."""
    missing = {
        (entry["featureName"], environment): entry
        for project in installation.projects
        for environment, data in project.flags.items()
        for entry in data["featureEnvironments"]
        if "featureName" in entry and "variants" not in entry
    }
    found: set[str] = set()
    unknown: set[str] = set()
    shape = list_members(Data)["featureEnvironments"]
    for row in database.read("feature_environments", FlagEnvironmentRow) if missing else ():
        entry = missing.get((row.feature_name, row.environment))
        if entry is not None and row.variants:
            entry["variants"] = row.variants
            keep_known(entry, shape, unknown, "featureEnvironments")
            found.add(name_variants(row.feature_name, row.environment))
    installation.left = [line for line in installation.left if line.subject not in found]
    if unknown:
        detail = f"the database has {', '.join(sorted(unknown))}, which is unknown here"
        installation.cannot("parts of variants", detail)
