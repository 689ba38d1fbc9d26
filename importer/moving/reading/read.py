"""Reads a whole installation of Unleash over its admin API, and lists what a move leaves behind.

Reads everything before writing anything. Release templates and plans come from the API if Unleash's edition has them,
or from its database.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from urllib.parse import quote

from pydantic import Field

from importer.moving.reading.database import MilestoneSegmentRow, SourceDatabase
from importer.moving.reading.installation import HISTORY, Installation, read_project
from importer.moving.reading.shapes import (
    MAJORS,
    TRIED,
    EventList,
    ListedProject,
    MilestoneStrategy,
    ReleaseRow,
    Shape,
    SourceAddon,
    SourceBanner,
    SourceEnvironment,
    SourceField,
    SourceFlagType,
    SourceMilestone,
    SourcePerson,
    SourcePlan,
    SourceSegment,
    SourceSettings,
    SourceStrategyType,
    SourceTag,
    SourceTagType,
    SourceTemplate,
    SourceToken,
    Statistics,
    read_list,
    read_shape,
)
from importer.moving.reading.source import Source, SourceError
from importer.moving.report import Kind, Line
from projects.models import StrategyType

STATISTICS = "/api/admin/instance-admin/statistics"
EVENTS = "/api/admin/search/events?limit=1000"


def read_tokens(source: Source) -> list[SourceToken]:
    return read_list(source, "/api/admin/api-tokens", "tokens", SourceToken)


def read_version(source: Source) -> str:
    """Raises SourceError if the server is not an Unleash with known answers."""
    return read_settings(source).version or ""


def read_settings(source: Source) -> SourceSettings:
    """Raises SourceError if the server is not an Unleash with known answers."""
    path = "/api/admin/ui-config"
    raw = source.get(path)
    settings = read_shape(source.address, path, raw if isinstance(raw, dict) else {}, SourceSettings)
    if (settings.version or "").split(".")[0] not in MAJORS:
        said = f"version {settings.version[:20]}" if settings.version else "no version"
        raise SourceError(
            f"{source.address}{path}: names {said}. Only Unleash {MAJORS[0]} to {TRIED} can be moved from."
        )
    return settings


def read_installation(
    source: Source, only: Collection[str] = (), stored: Collection[str] = ()
) -> Installation:
    """Reads everything, or some projects with all shared objects. Raises SourceError.

    ``stored`` are the projects in the server's database, if it can be read.
    """
    settings = read_settings(source)
    version = settings.version or ""
    installation = Installation(
        source.address,
        version,
        environments=read_list(source, "/api/admin/environments", "environments", SourceEnvironment),
        fields=read_list(source, "/api/admin/context", None, SourceField),
        segments=read_list(source, "/api/admin/segments", "segments", SourceSegment),
        strategy_types=read_list(source, "/api/admin/strategies", "strategies", SourceStrategyType),
        tag_types=read_list(source, "/api/admin/tag-types", "tagTypes", SourceTagType),
        tags=read_list(source, "/api/admin/tags", "tags", SourceTag, optional=True),
        flag_types=read_list(source, "/api/admin/feature-types", "types", SourceFlagType, optional=True),
        tokens=read_tokens(source),
        people=read_list(source, "/api/admin/user-admin", "users", SourcePerson, optional=True),
        origins=settings.origins,
        addons=read_list(source, "/api/admin/addons", "addons", SourceAddon, optional=True),
    )
    if version.split(".")[0] != TRIED:
        detail = f"moves have been tried with Unleash {TRIED}. Let a proof compare what SDKs get"
        installation.left.append(Line(Kind.NOTE, f"Unleash {version}", detail))
    _read_projects(source, installation, only, stored)
    _share_segments(installation)
    _add_unlisted_strategy_types(installation)
    read_releases(source, installation)
    note_left(source, installation)
    return installation


def _read_projects(
    source: Source, installation: Installation, only: Collection[str], stored: Collection[str]
) -> None:
    known = {each.name: each for each in installation.environments}

    def read(project_id: str) -> bool:
        if any(project.id == project_id for project in installation.projects):
            return True
        project = read_project(source, project_id, known, installation)
        if project is not None:
            installation.projects.append(project)
        return project is not None

    if only:
        _read_chosen(source, only, read)
    else:
        _read_all(source, installation, stored, read)
    installation.environments = list(known.values())


def _read_chosen(source: Source, only: Collection[str], read: Callable[[str], bool]) -> None:
    for project_id in dict.fromkeys(only):
        if not read(project_id):
            raise SourceError(
                f"{source.address} has no project {project_id}, or does not show it to this token."
            )


def _read_all(
    source: Source, installation: Installation, stored: Collection[str], read: Callable[[str], bool]
) -> None:
    for project_id in dict.fromkeys([*_list_projects(source, installation), *sorted(stored)]):
        if not read(project_id):
            detail = "a token, a segment or the database names it, and it cannot be read"
            installation.cannot(f"project {project_id}", detail, project_id)
    raw = source.find(STATISTICS)
    counted = read_shape(source.address, STATISTICS, raw or {}, Statistics)
    if (counted.projects or 0) > len(installation.projects):
        for project_id in _find_in_events(source):
            read(project_id)
    note_missing(installation, counted)


def _list_projects(source: Source, installation: Installation) -> Iterable[str]:
    """The project ids. Unleash's list omits projects that its edition does not support, but SDKs still get them."""
    listed = read_list(source, "/api/admin/projects", "projects", ListedProject)
    named = [project for token in installation.tokens for project in token.projects if project != "*"]
    named += [segment.project for segment in installation.segments if segment.project]
    return dict.fromkeys([*(project.id for project in listed), *sorted(named)])


def _find_in_events(source: Source) -> Iterable[str]:
    """Projects named in the log, possibly deleted ones."""
    raw = source.find(EVENTS)
    events = read_shape(source.address, EVENTS, raw or {}, EventList).events
    return sorted({event.project for event in events if event.project and event.project.isprintable()})


def _share_segments(installation: Installation) -> None:
    """Makes a project's segment global if flags of other projects use it, which is not possible here."""
    users: dict[str, set[str]] = {}
    for project in installation.projects:
        for data in project.flags.values():
            for used in data["segments"]:
                users.setdefault(used.get("name", ""), set()).add(project.id)
    for segment in installation.segments:
        if segment.project and (others := users.get(segment.name, set()) - {segment.project}):
            detail = f"of project {segment.project} becomes one of all projects: {', '.join(sorted(others))} use it too"
            installation.left.append(Line(Kind.NOTE, f"segment {segment.name}", detail))
            segment.project = None


def _add_unlisted_strategy_types(installation: Installation) -> None:
    """Flags keep strategies of a deleted type. SDKs do not know it, so such a strategy is never on."""
    listed = {kind.name for kind in installation.strategy_types}
    used = {
        strategy["name"]
        for project in installation.projects
        for data in project.flags.values()
        for strategy in data["featureStrategies"]
        if isinstance(strategy.get("name"), str)
    }
    built_in = StrategyType.objects.filter(built_in=True).values_list("name", flat=True)
    for name in sorted(used - listed - {*built_in}):
        kind = SourceStrategyType(name=name, editable=True, deprecated=True, parameters=[])
        installation.strategy_types.append(kind)
        detail = "flags use it, and the list of types there does not have it: it comes as a deprecated one"
        installation.left.append(Line(Kind.NOTE, f"strategy type {name}", detail))


TEMPLATES = "/api/admin/release-plan-templates"
ADDED = "/api/admin/search/events?type=IS:release-plan-added&limit=1000&offset="
MAX_EVENTS = 100_000
SEGMENTS = "milestone_strategy_segments"


class _Added(Shape):
    project: str = ""
    flag: str = Field("", alias="featureName")
    environment: str = ""


class _AddedEvents(Shape):
    events: list[_Added] = []


def read_releases(source: Source, installation: Installation) -> None:
    """Finds plans in the log, because asking for each flag in each environment would take too long."""
    installation.templates = read_list(source, TEMPLATES, None, SourceTemplate, optional=True)
    if not installation.templates:
        return
    places = dict.fromkeys(
        (event.project, event.flag, event.environment) for event in _read_added(source) if event.flag
    )

    def read(place: tuple[str, str, str]) -> list[SourcePlan]:
        project, flag, environment = (quote(part, safe="") for part in place)
        path = f"/api/admin/projects/{project}/features/{flag}/environments/{environment}/release-plans"
        return read_list(source, path, None, SourcePlan, optional=True)

    installation.plans = [plan for plans in source.for_each(read, places) for plan in plans]


def _read_added(source: Source) -> Iterator[_Added]:
    for offset in range(0, MAX_EVENTS, 1_000):
        path = f"{ADDED}{offset}"
        events = read_shape(source.address, path, source.find(path) or {}, _AddedEvents).events
        yield from events
        if len(events) < 1_000:
            return


def add_releases(installation: Installation, database: SourceDatabase) -> None:
    """Adds the templates and plans of the database, if it has any."""
    milestones = _read_milestones(installation, database)
    rows = database.read("release_plan_definitions", ReleaseRow)
    for row in rows:
        row.milestones = milestones[row.id]
    templates = [row for row in rows if row.discriminator == "template"]
    plans = [row for row in rows if row.discriminator != "template"]
    installation.templates = [*templates] or installation.templates
    installation.plans = [*plans] or installation.plans


def _read_milestones(
    installation: Installation, database: SourceDatabase
) -> dict[str, list[SourceMilestone]]:
    """Reads the milestones by their template or plan."""
    strategies: dict[str, list[MilestoneStrategy]] = defaultdict(list)
    segments = _read_segments(installation, database)
    for strategy in database.read("milestone_strategies", MilestoneStrategy):
        strategy.segments = segments[strategy.id]
        strategies[strategy.milestone_id].append(strategy)
    milestones: dict[str, list[SourceMilestone]] = defaultdict(list)
    for milestone in database.read("milestones", SourceMilestone):
        milestone.strategies = strategies[milestone.id]
        milestones[milestone.release_plan_definition_id].append(milestone)
    return milestones


def _read_segments(installation: Installation, database: SourceDatabase) -> dict[str, list[int]]:
    segments: dict[str, list[int]] = defaultdict(list)
    if database.has(SEGMENTS, "milestone_strategy_id", "segment_id"):
        for row in database.read(SEGMENTS, MilestoneSegmentRow):
            segments[row.milestone_strategy_id].append(row.segment_id)
    elif SEGMENTS in database.tables and database.count(SEGMENTS, 1):
        detail = f"table {SEGMENTS} is unknown here: check who gets each milestone"
        installation.cannot("segments of release templates", detail)
    return segments


MOVED = {
    "addons",
    "api_token_project",
    "api_tokens",
    "api_tokens_v2",
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
"""Tables of Unleash whose rows are moved, over the API or from the database."""
NO_BANNERS = "flagadmin's console has none: tell people in another way, such as by email"
STAYS = {
    "banners": f"banners: {NO_BANNERS}",
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
"""Tables of Unleash that are not moved, with the reasons."""
IN_DATABASE = (
    "passwords, groups, custom roles, roles in projects, personal tokens, favorites, lifecycle stages, usage and the "
    "audit log are in the database of Unleash alone"
)
GIVEN_ANEW = (
    "Ids, dates of other things than flags, pictures and SCIM ids of people are new here; change requests and "
    "settings of the server stay there"
)
COUNTED = 10_000
"""Limit on counting rows of such a table."""


def note_left(source: Source, installation: Installation) -> None:
    for banner in read_list(source, "/api/admin/banners", "banners", SourceBanner, optional=True):
        installation.cannot(f"banner {banner.message[:80]!r}", NO_BANNERS)
    for project in installation.projects:
        if project.overview.mode == "private":
            detail = (
                "only admins see it here until its members get their roles again, or move with --database"
            )
            installation.cannot(f"members of private project {project.id}", detail, project.id)
    for environment in installation.environments:
        if environment.approvals:
            installation.cannot(f"required approvals in {environment.name}", "set them in each project")
    installation.cannot(HISTORY, f"{IN_DATABASE}: move with --database. {GIVEN_ANEW}")


def note_missing(installation: Installation, counted: Statistics) -> None:
    """Reports objects that the server counts but does not show."""
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
    """Reports the tables of the other database that are not moved, including unknown ones."""
    for table in sorted(database.tables - MOVED):
        count = database.count(table, COUNTED + 1)
        if count:
            rows = f"{count:,} rows" if count <= COUNTED else f"more than {COUNTED:,} rows"
            detail = f"{rows}: {STAYS.get(table, 'unknown here')}"
            installation.left.append(Line(Kind.NOTE, f"table {table} stays there", detail))
