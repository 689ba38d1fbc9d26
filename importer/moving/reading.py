"""Reads a whole installation of Unleash 8 over its admin API. Nothing is written anywhere before all of it is read."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, TypeVar
from urllib.parse import quote

from importer.moving.installation import HISTORY, Installation, SourceProject
from importer.moving.report import Kind, Line
from importer.moving.shapes import (
    MAJOR,
    Export,
    FlagDetails,
    FlagList,
    FlagPage,
    ListedProject,
    Overview,
    SourceAddon,
    SourceEnvironment,
    SourceField,
    SourceFlag,
    SourceFlagType,
    SourcePerson,
    SourceSegment,
    SourceStrategyType,
    SourceTagType,
    SourceToken,
    read_shape,
)
from importer.moving.source import Source, SourceError

V = TypeVar("V")
NAMES_AT_ONCE = 1_000  # flags of one export
PAGE = 100  # flags of one page of a search, which may be asked for only 15 times a minute
MAX_ARCHIVED = 100_000  # flags of one project


def read_tokens(source: Source) -> list[SourceToken]:
    return _list(source, "/api/admin/api-tokens", "tokens", SourceToken)


def read_version(source: Source) -> str:
    """Raises SourceError if the server is not an Unleash of a version that this has been tried with."""
    path = "/api/admin/ui-config"
    version = source.get(path)
    version = version.get("version") if isinstance(version, dict) else None
    if not isinstance(version, str) or version.split(".")[0] != MAJOR:
        said = f"version {version[:20]}" if isinstance(version, str) else "no version"
        raise SourceError(f"{source.address}{path}: names {said}. Only Unleash {MAJOR} can be moved from.")
    return version


def read_installation(source: Source, only: Collection[str] = ()) -> Installation:
    """Reads everything, or some projects with all that projects share. Raises SourceError."""
    version = read_version(source)
    installation = Installation(
        source.address,
        version,
        environments=_list(source, "/api/admin/environments", "environments", SourceEnvironment),
        fields=_list(source, "/api/admin/context", None, SourceField),
        segments=_list(source, "/api/admin/segments", "segments", SourceSegment),
        strategy_types=_list(source, "/api/admin/strategies", "strategies", SourceStrategyType),
        tag_types=_list(source, "/api/admin/tag-types", "tagTypes", SourceTagType),
        flag_types=_list(source, "/api/admin/feature-types", "types", SourceFlagType, optional=True),
        tokens=read_tokens(source),
        people=_list(source, "/api/admin/user-admin", "users", SourcePerson, optional=True),
    )
    known = {each.name: each for each in installation.environments}
    for project_id in _find_projects(source, installation, only):
        if (project := _read_project(source, project_id, known, installation)) is not None:
            installation.projects.append(project)
        elif project_id in only:
            raise SourceError(
                f"{source.address} has no project {project_id}, or does not show it to this token."
            )
    installation.environments = list(known.values())
    _share_segments(installation)
    _note_left(source, installation)
    return installation


def _find_projects(source: Source, installation: Installation, only: Collection[str]) -> Iterable[str]:
    """Their ids. Unleash's list leaves out projects that its edition does not have, but still serves to SDKs."""
    if only:
        return dict.fromkeys(only)
    listed = _list(source, "/api/admin/projects", "projects", ListedProject)
    named = [project for token in installation.tokens for project in token.projects if project != "*"]
    named += [segment.project for segment in installation.segments if segment.project]
    return dict.fromkeys([*(project.id for project in listed), *sorted(named)])


def _read_project(
    source: Source, project_id: str, known: dict[str, SourceEnvironment], installation: Installation
) -> SourceProject | None:
    path = f"/api/admin/projects/{quote(project_id, safe='')}"
    raw = source.find(f"{path}/overview")
    if raw is None:
        installation.cannot(
            f"project {project_id}", "a token or segment names it, and it cannot be read", project_id
        )
        return None
    overview = read_shape(source.address, f"{path}/overview", raw, Overview)
    active = read_shape(source.address, f"{path}/features", source.get(f"{path}/features"), FlagList).features
    archived = list(_search_archived(source, project_id))
    for environment in (each for flag in (*active, *archived) for each in flag.environments):
        # Environments that the list leaves out.
        known.setdefault(
            environment.name,
            SourceEnvironment(
                name=environment.name, type=environment.type, sort_order=environment.sort_order
            ),
        )
    for used in overview.environments:
        known.setdefault(used.environment, SourceEnvironment(name=used.environment))
    fields = source.find(f"{path}/context")
    environments = [used.environment for used in overview.environments]
    flags = _read_flags(source, project_id, environments, [flag.name for flag in (*active, *archived)])
    for environment_name, data in flags.items():
        installation.left += _add_missing_switches(project_id, environment_name, data, active)
    return SourceProject(
        project_id,
        overview,
        read_shape(source.address, f"{path}/context", fields or [], list[SourceField]),
        flags,
    )


def _search_archived(source: Source, project_id: str) -> Iterator[SourceFlag]:
    found, total = 0, 1
    while found < total:
        offset = f"&offset={found}" if found else ""
        query = f"project=IS:{quote(project_id, safe='')}&archived=IS:true&limit={PAGE}{offset}"
        path = f"/api/admin/search/features?{query}"
        page = read_shape(source.address, path, source.get(path), FlagPage)
        yield from page.features
        if not page.features:
            return
        found, total = found + len(page.features), page.total
        if found > MAX_ARCHIVED:
            raise SourceError(f"{source.address}{path}: has more than {MAX_ARCHIVED:,} archived flags.")


def _read_flags(
    source: Source, project_id: str, environments: list[str], names: list[str]
) -> dict[str, dict[str, Any]]:
    """The merged exports of the flags, by environment, with the order of strategies, which exports do not have."""
    parts = [names[start : start + NAMES_AT_ONCE] for start in range(0, len(names), NAMES_AT_ONCE)]
    path = "/api/admin/features-batch/export"

    def read(asked: tuple[str, list[str]]) -> Any:
        body = {"environment": asked[0], "features": asked[1], "downloadFile": False}
        raw = source.post(path, body)
        export = read_shape(source.address, path, raw, Export)
        if other := next((flag for flag in export.features if flag.project != project_id), None):
            raise SourceError(
                f"{source.address}{path}: exports {other.name} of another project than {project_id}."
            )
        return read_shape(source.address, path, raw, dict[str, list[dict[str, Any]]])

    asked = [(environment, part) for environment in environments for part in parts]
    flags: dict[str, dict[str, Any]] = {environment: _empty_export() for environment in environments}
    for (environment, _), answer in zip(asked, source.for_each(read, asked), strict=True):
        for member, entries in flags[environment].items():
            entries += answer.get(member, [])
    for data in flags.values():
        data["segments"] = list({segment["id"]: segment for segment in data["segments"]}.values())
        _turn_archived_off(data)
    _order_strategies(source, project_id, flags)
    return flags


def _add_missing_switches(
    project_id: str, environment: str, data: dict[str, Any], flags: Iterable[SourceFlag]
) -> Iterator[Line]:
    """Exports leave out whether flags are on in environments that Unleash's edition does not have."""
    exported = {entry.get("featureName") for entry in data["featureEnvironments"]}
    for flag in flags:
        used = next((each for each in flag.environments if each.name == environment), None)
        if used is None or flag.name in exported:
            continue
        entry = {"name": flag.name, "featureName": flag.name, "environment": environment}
        data["featureEnvironments"].append(entry | {"enabled": used.enabled})
        if used.variants:
            detail = "its export leaves them out"
            subject = f"variants of flag {flag.name} in {environment}"
            yield Line(Kind.CANNOT, subject, detail, project_id, flag.name)


def _turn_archived_off(data: dict[str, Any]) -> None:
    """An archived flag keeps its switch there, which does nothing: one that is revived is off, there and here."""
    archived = {flag["name"] for flag in data["features"] if flag.get("archived")}
    for entry in data["featureEnvironments"]:
        if entry.get("featureName") in archived:
            entry["enabled"] = False


def _empty_export() -> dict[str, Any]:
    # Not those that are moved as such: context fields and tag types.
    members = (
        "features",
        "featureStrategies",
        "featureEnvironments",
        "featureTags",
        "segments",
        "dependencies",
        "links",
    )
    return {member: [] for member in members}


def _order_strategies(source: Source, project_id: str, flags: dict[str, dict[str, Any]]) -> None:
    """Sets the sort order of strategies where a flag has several in an environment."""
    several: set[str] = set()
    archived: set[str] = set()
    for data in flags.values():
        seen: set[str] = set()
        archived.update(flag["name"] for flag in data["features"] if flag.get("archived"))
        for strategy in data["featureStrategies"]:
            name = strategy.get("featureName", "")
            (several if name in seen else seen).add(name)

    def read(name: str) -> dict[str, int]:
        path = f"/api/admin/projects/{quote(project_id, safe='')}/features/{quote(name, safe='')}"
        details = read_shape(source.address, path, source.get(path), FlagDetails)
        listed = [strategies for each in details.environments if (strategies := each.strategies)]
        return {
            strategy.id: place
            for strategies in listed
            for place, strategy in enumerate(sorted(strategies, key=lambda each: each.sort_order or 0))
        }

    places: dict[str, int] = {}
    for answer in source.for_each(read, sorted(several - archived)):
        places |= answer
    for data in flags.values():
        for strategy in data["featureStrategies"]:
            if (place := places.get(strategy.get("id", ""))) is not None:
                strategy["sortOrder"] = place


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


def _note_left(source: Source, installation: Installation) -> None:
    """Says what does not move."""
    for addon in _list(source, "/api/admin/addons", "addons", SourceAddon, optional=True):
        named = f"{addon.provider}{f', {addon.description}' if addon.description else ''}"
        installation.cannot(
            f"integration {addon.id} ({named})", "set it up again here: its secrets are not readable"
        )
    for project in installation.projects:
        overview = project.overview
        if overview.link_templates:
            installation.cannot(f"link templates of {project.id}", "there are none here", project.id)
        if overview.mode != "open":
            detail = f"its mode is {overview.mode}; here, roles decide who can read a project"
            installation.cannot(f"privacy of project {project.id}", detail, project.id)
    for environment in installation.environments:
        if environment.approvals:
            installation.cannot(f"required approvals in {environment.name}", "set them in each project")
    installation.cannot(
        HISTORY, "audit log, usage, dates of creation, favorites and release plans stay there"
    )


def _list(
    source: Source, path: str, member: str | None, shape: type[V], *, optional: bool = False
) -> list[V]:
    """What is ``optional`` is empty if the server does not have it, or not for this token."""
    raw = source.find(path) if optional else source.get(path)
    if optional and raw is None:
        return []
    if member is not None:
        raw = raw.get(member) if isinstance(raw, dict) else None
    return read_shape(source.address, path, raw, list[shape])  # type: ignore[valid-type]
