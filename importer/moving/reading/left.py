"""Lists what a move leaves behind: nothing stays there without a line in the report."""

from importer.moving.reading.database import SourceDatabase
from importer.moving.reading.installation import HISTORY, Installation
from importer.moving.reading.shapes import SourceAddon, SourceSettings, Statistics, read_list
from importer.moving.reading.source import Source
from importer.moving.report import Kind, Line

MOVED = {
    "api_token_project",
    "api_tokens",
    "client_metrics_env",
    "client_metrics_env_daily",
    "client_metrics_env_variants",
    "client_metrics_env_variants_daily",
    "context_fields",
    "dependent_features",
    "environments",
    "events",
    "favorite_features",
    "favorite_projects",
    "feature_environments",
    "feature_lifecycles",
    "feature_link",
    "feature_strategies",
    "feature_strategy_segment",
    "feature_tag",
    "feature_types",
    "features",
    "group_role",
    "group_user",
    "groups",
    "last_seen_at_metrics",
    "milestone_strategies",
    "milestone_strategy_segments",
    "milestones",
    "personal_access_tokens",
    "project_environments",
    "project_settings",
    "projects",
    "release_plan_definitions",
    "role_permission",
    "role_user",
    "roles",
    "segments",
    "strategies",
    "tag_types",
    "tags",
    "users",
}
"""Tables of Unleash whose rows come here, over the API or from the database."""
NAMED = {"addons"}
"""Tables whose rows have lines of their own."""
STAYS = {
    "client_applications": "applications: those that were used in the last 30 days come with their usage, without "
    "description, icon and color; SDKs register again",
    "client_applications_usage": "projects of applications: follow from usage here",
    "client_instances": "instances of applications: SDKs register again",
    "settings": "settings of the server: set them here",
    "reset_tokens": "links to set a password: send new ones from the page People",
    "used_passwords": "earlier passwords of people",
    "project_stats": "statistics of projects: are counted anew",
    "stat_environment_updates": "statistics of environments: are counted anew",
    "onboarding_events_instance": "first steps of the server",
    "onboarding_events_project": "first steps of projects",
    "permissions": "names of permissions: they are built in here",
}
"""Tables of Unleash that stay there, and why."""
IN_DATABASE = (
    "passwords, groups, custom roles, roles in projects, personal tokens, favorites, lifecycle stages, usage and the "
    "audit log are in the database of Unleash alone"
)
GIVEN_ANEW = (
    "Ids, dates of other things than flags, pictures and SCIM ids of people are new here; change requests and "
    "settings of the server stay there"
)
COUNTED = 10_000
"""Rows of such a table are counted no further."""


def note_left(source: Source, installation: Installation, settings: SourceSettings) -> None:
    if settings.origins != ["*"]:
        detail = f"set them here: {', '.join(settings.origins) or 'none'}"
        installation.cannot("origins that may call the frontend API", detail)
    for addon in read_list(source, "/api/admin/addons", "addons", SourceAddon, optional=True):
        named = f"{addon.provider}{f', {addon.description}' if addon.description else ''}"
        installation.cannot(
            f"integration {addon.id} ({named})", "set it up again here: its secrets are not readable"
        )
    for project in installation.projects:
        overview = project.overview
        if overview.mode != "open":
            detail = f"its mode is {overview.mode}; here, roles decide who can read a project"
            installation.cannot(f"privacy of project {project.id}", detail, project.id)
    for environment in installation.environments:
        if environment.approvals:
            installation.cannot(f"required approvals in {environment.name}", "set them in each project")
    installation.cannot(HISTORY, f"{IN_DATABASE}: move with --database. {GIVEN_ANEW}")


def note_missing(installation: Installation, counted: Statistics) -> None:
    """Says what the server has, as it counts, and does not show."""
    archived = sum(len(project.archived) for project in installation.projects)
    flags = sum(len(project.listed) for project in installation.projects) - archived
    shown = {
        "project": (counted.projects, len(installation.projects)),
        "flag": (counted.flags, flags),
        "archived flag": (counted.archived, archived),
    }
    for noun, (there, read) in shown.items():
        if (missing := (there or 0) - read) > 0:
            detail = "are there and not listed: name their projects with --project, or move with --database"
            installation.cannot(f"{missing:,} more {noun}s", detail)


def note_tables(installation: Installation, database: SourceDatabase) -> None:
    """Says which tables of the other database stay there, even those that nothing is known of."""
    for table in sorted(database.tables - MOVED - NAMED):
        count = database.count(table, COUNTED + 1)
        if count:
            rows = f"{count:,} rows" if count <= COUNTED else f"more than {COUNTED:,} rows"
            detail = f"{rows}: {STAYS.get(table, 'unknown here')}"
            installation.left.append(Line(Kind.NOTE, f"table {table} stays there", detail))
