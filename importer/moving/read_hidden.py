"""Reads what the database of Unleash has and its API does not show."""

from collections import defaultdict

from importer.moving.database import SourceDatabase
from importer.moving.hidden import (
    FavoriteRow,
    GroupRow,
    GroupUserRow,
    HeldRole,
    Hidden,
    MilestoneRow,
    MilestoneStrategyRow,
    PersonalTokenRow,
    ProjectRow,
    ReleaseRow,
    RolePermissionRow,
    RoleRow,
    TokenRow,
    UserRow,
)
from importer.moving.installation import HISTORY, Installation
from importer.moving.left import GIVEN_ANEW, note_tables
from importer.moving.shapes import SourceMilestone, SourcePerson, SourceTemplate


def list_projects(database: SourceDatabase) -> list[str]:
    """Those that are not archived."""
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
    _add_releases(installation, database)
    note_tables(installation, database)
    for token in installation.tokens:
        if token.secure and (stored := hidden.tokens.get(token.secret)) is not None:
            token.digest = stored.digest


def _add_releases(installation: Installation, database: SourceDatabase) -> None:
    """Adds release templates, and says which plans stay there."""
    strategies: dict[str, list[MilestoneStrategyRow]] = defaultdict(list)
    for strategy in database.read("milestone_strategies", MilestoneStrategyRow):
        strategies[strategy.milestone_id].append(strategy)
    milestones: dict[str, list[SourceMilestone]] = defaultdict(list)
    for row in database.read("milestones", MilestoneRow):
        listed = [
            each.model_dump(exclude_unset=True, exclude={"strategy_name", "milestone_id"})
            | {"name": each.strategy_name}
            for each in strategies[row.id]
        ]
        document = {"id": row.id, "name": row.name, "sort_order": row.sort_order, "strategies": listed}
        milestones[row.release_plan_definition_id].append(SourceMilestone.model_validate(document))
    templates = []
    for release in database.read("release_plan_definitions", ReleaseRow):
        if release.discriminator == "template":
            document = release.model_dump(include={"name", "description", "project", "archived_at"})
            templates.append(SourceTemplate(**document, milestones=milestones[release.id]))
        else:
            detail = "the strategies of its active milestone come; add a plan here for its other milestones"
            subject = f"release plan {release.name} of {release.feature_name} in {release.environment}"
            installation.cannot(subject, detail, release.project or "")
    installation.templates = installation.templates or templates
