"""Reads a whole installation of Unleash over its admin API. Nothing is written anywhere before all of it is read."""

from collections.abc import Callable, Collection, Iterable

from importer.moving.reading.exports import read_project
from importer.moving.reading.installation import Installation
from importer.moving.reading.left import note_left, note_missing
from importer.moving.reading.read_releases import read_releases
from importer.moving.reading.shapes import (
    MAJORS,
    TRIED,
    EventList,
    ListedProject,
    SourceEnvironment,
    SourceField,
    SourceFlagType,
    SourcePerson,
    SourceSegment,
    SourceSettings,
    SourceStrategyType,
    SourceTag,
    SourceTagType,
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
    """Raises SourceError if the server is not an Unleash whose answers are known."""
    return read_settings(source).version or ""


def read_settings(source: Source) -> SourceSettings:
    """Raises SourceError if the server is not an Unleash whose answers are known."""
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
    """Reads everything, or some projects with all that projects share. Raises SourceError.

    ``stored`` are the projects that the server's database has, if it can be read.
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
    )
    if version.split(".")[0] != TRIED:
        detail = f"moves have been tried with Unleash {TRIED}. Let a proof compare what SDKs get"
        installation.left.append(Line(Kind.NOTE, f"Unleash {version}", detail))
    _read_projects(source, installation, only, stored)
    _share_segments(installation)
    _add_unlisted_strategy_types(installation)
    read_releases(source, installation)
    note_left(source, installation, settings)
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
    """Their ids. Unleash's list leaves out projects that its edition does not have, but still serves to SDKs."""
    listed = read_list(source, "/api/admin/projects", "projects", ListedProject)
    named = [project for token in installation.tokens for project in token.projects if project != "*"]
    named += [segment.project for segment in installation.segments if segment.project]
    return dict.fromkeys([*(project.id for project in listed), *sorted(named)])


def _find_in_events(source: Source) -> Iterable[str]:
    """Projects that its log names. They may be deleted."""
    raw = source.find(EVENTS)
    events = read_shape(source.address, EVENTS, raw or {}, EventList).events
    return sorted({event.project for event in events if event.project and event.project.isprintable()})


def _share_segments(installation: Installation) -> None:
    """Makes a project's segment one of all projects if flags of other projects use it, which is not possible here."""
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
    """Flags keep strategies whose type was deleted there. SDKs do not know it, so such a strategy is never on."""
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
