"""All data read from the other installation, and the exports of its projects."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from flagadmin.core.document import Document
from importer.body.schema_errors import list_members
from importer.body.schemas import Data
from importer.moving.reading.database import Hidden
from importer.moving.reading.shapes import (
    Export,
    FlagDetails,
    FlagList,
    FlagPage,
    Overview,
    SourceAddon,
    SourceEnvironment,
    SourceField,
    SourceFlag,
    SourceFlagType,
    SourcePerson,
    SourcePlan,
    SourceSegment,
    SourceStrategyType,
    SourceTag,
    SourceTagType,
    SourceTemplate,
    SourceToken,
    read_shape,
)
from importer.moving.reading.source import Source, SourceError
from importer.moving.report import Kind, Line

HISTORY = "history"


@dataclass(slots=True)
class SourceProject:
    """A project: ``flags`` are the data of its exports, by environment, ``listed`` all flags with their dates.

    ``exported`` are the members of its exports, including empty ones.
    """

    id: str
    overview: Overview
    fields: list[SourceField]
    listed: list[SourceFlag]
    archived: set[str]
    flags: dict[str, dict[str, Any]] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Installation:
    """All readable data. ``left`` describes the rest in words."""

    address: str
    version: str
    environments: list[SourceEnvironment]
    fields: list[SourceField]
    segments: list[SourceSegment]
    strategy_types: list[SourceStrategyType]
    tag_types: list[SourceTagType]
    tags: list[SourceTag]
    flag_types: list[SourceFlagType]
    tokens: list[SourceToken]
    people: list[SourcePerson]
    origins: list[str]
    addons: list[SourceAddon]
    templates: list[SourceTemplate] = field(default_factory=list)
    plans: list[SourcePlan] = field(default_factory=list)
    hidden: Hidden | None = None
    projects: list[SourceProject] = field(default_factory=list)
    left: list[Line] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    """The projects that a move has refused. Other objects that need them are not reported as faulty."""
    segment_names: dict[int, str] = field(init=False)
    """The segments' names by their ids there, including segments that are left out."""

    def __post_init__(self) -> None:
        self.segment_names = {segment.id: segment.name for segment in self.segments}

    @property
    def flag_names(self) -> set[str]:
        return {flag.name for project in self.projects for flag in project.listed}

    def cannot(self, subject: str, detail: str, project: str = "") -> None:
        self.left.append(Line(Kind.CANNOT, subject, detail, project))


NAMES_AT_ONCE = 1_000  # flags of one export
PAGE = 100  # flags per page of a search, which is limited to 15 requests a minute
MAX_ARCHIVED = 100_000  # flags of one project
EXPORT = "/api/admin/features-batch/export"
PARTS = (
    "features",
    "featureStrategies",
    "featureEnvironments",
    "featureTags",
    "segments",
    "dependencies",
    "links",
)
"""The members that are read from exports."""
MOVED_AS_SUCH = ("contextFields", "tagTypes")


def read_project(
    source: Source, project_id: str, known: dict[str, SourceEnvironment], installation: Installation
) -> SourceProject | None:
    """None if the server does not show it. Adds environments missing from the list to the ``known`` ones."""
    source.begin(f"Reading project {project_id}")
    path = f"/api/admin/projects/{quote(project_id, safe='')}"
    raw = source.find(f"{path}/overview")
    if raw is None:
        return None
    overview = read_shape(source.address, f"{path}/overview", raw, Overview)
    active = read_shape(source.address, f"{path}/features", source.get(f"{path}/features"), FlagList).features
    archived = _read_archived(source, project_id, {flag.name for flag in active}, installation)
    for environment in (each for flag in (*active, *archived) for each in flag.environments):
        known.setdefault(
            environment.name,
            SourceEnvironment(
                name=environment.name, type=environment.type, sort_order=environment.sort_order
            ),
        )
    for used in overview.environments:
        known.setdefault(used.environment, SourceEnvironment(name=used.environment))
    fields = source.find(f"{path}/context")
    project = SourceProject(
        project_id,
        overview,
        read_shape(source.address, f"{path}/context", fields or [], list[SourceField]),
        listed=[*active, *archived],
        archived={flag.name for flag in archived},
    )
    project.flags = _read_flags(source, project, installation)
    for environment_name, data in project.flags.items():
        _complete_variants(data)
        installation.left += _add_missing_switches(project_id, environment_name, data, active)
        installation.left += _add_strategies_for_everybody(project_id, environment_name, data)
    return project


def _read_archived(
    source: Source, project_id: str, active: Collection[str], installation: Installation
) -> list[SourceFlag]:
    listed = list(_search_archived(source, project_id))
    archived = [flag for flag in listed if flag.name not in active]
    if len(archived) < len(listed):  # the server does not support this filter
        detail = f"Unleash {installation.version} does not list them"
        installation.cannot(f"archived flags of project {project_id}", detail, project_id)
    return archived


def _search_archived(source: Source, project_id: str) -> Iterator[SourceFlag]:
    count, total = 0, 1
    while count < total:
        offset = f"&offset={count}" if count else ""
        query = f"project=IS:{quote(project_id, safe='')}&archived=IS:true&limit={PAGE}{offset}"
        path = f"/api/admin/search/features?{query}"
        page = read_shape(source.address, path, source.get(path), FlagPage)
        yield from page.features
        if not page.features:
            return
        count, total = count + len(page.features), page.total
        if count > MAX_ARCHIVED:
            raise SourceError(f"{source.address}{path}: has more than {MAX_ARCHIVED:,} archived flags.")


# Exports ---------------------------------------------------------------------------------------------------


def _read_flags(source: Source, project: SourceProject, installation: Installation) -> dict[str, Document]:
    """The merged exports of the flags, by environment, with the order of strategies, which exports lack."""
    names = list(dict.fromkeys(flag.name for flag in project.listed))
    parts = [names[start : start + NAMES_AT_ONCE] for start in range(0, len(names), NAMES_AT_ONCE)]
    environments = [used.environment for used in project.overview.environments]

    def read(wanted: tuple[str, list[str]]) -> Document:
        source.begin(f"Reading {len(wanted[1]):,} flags of project {project.id} in {wanted[0]}")
        body = {"environment": wanted[0], "features": wanted[1], "downloadFile": False}
        raw = source.post(EXPORT, body)
        export = read_shape(source.address, EXPORT, raw, Export)
        if other := next((flag for flag in export.features if flag.project != project.id), None):
            raise SourceError(
                f"{source.address}{EXPORT}: exports {other.name} of another project than {project.id}."
            )
        return read_shape(source.address, EXPORT, raw, Document)

    wanted = [(environment, part) for environment in environments for part in parts]
    flags: dict[str, Document] = {environment: {part: [] for part in PARTS} for environment in environments}
    unknown: set[str] = set()
    for (environment, _), export in zip(wanted, source.for_each(read, wanted), strict=True):
        project.exported |= export.keys()
        unknown |= {member for member, value in export.items() if value and member not in _KNOWN}
        for part, entries in flags[environment].items():
            entries += _read_entries(source.address, part, export.get(part) or [], unknown)
    for data in flags.values():
        data["segments"] = list({segment["id"]: segment for segment in data["segments"]}.values())
        _turn_archived_off(data, project.archived)
    _order_strategies(source, project, flags)
    if unknown:
        detail = f"exports have {', '.join(sorted(unknown))}, which is unknown here"
        installation.cannot(f"parts of flags of project {project.id}", detail, project.id)
    return flags


_KNOWN = {*PARTS, *MOVED_AS_SUCH}


def _read_entries(address: str, part: str, raw: Any, unknown: set[str]) -> list[Document]:
    entries = read_shape(address, f"{EXPORT}: {part}", raw, list[Document])
    shape = list_members(Data)[part]
    for entry in entries:
        keep_known(entry, shape, unknown, part)
    return entries


def keep_known(entry: Document, shape: Any, unknown: set[str], place: str) -> None:
    """Drops nulls and members that imports do not know. Adds the latter to ``unknown``."""
    members = list_members(shape)
    for member, value in list(entry.items()):
        if member not in members or value is None:
            del entry[member]
            if value not in (None, "", [], {}):
                unknown.add(f"{place}.{member}")
        elif (inner := members[member]) is not None:
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, dict):
                    keep_known(each, inner, unknown, f"{place}.{member}")


def _add_missing_switches(
    project_id: str, environment: str, data: Document, flags: Iterable[SourceFlag]
) -> Iterator[Line]:
    """Exports omit whether flags are on in environments that Unleash's edition does not support."""
    exported = {entry.get("featureName") for entry in data["featureEnvironments"]}
    for flag in flags:
        used = next((each for each in flag.environments if each.name == environment), None)
        if used is None or flag.name in exported:
            continue
        entry = {"name": flag.name, "featureName": flag.name, "environment": environment}
        data["featureEnvironments"].append(entry | {"enabled": used.enabled})
        if used.variants:
            detail = "its export leaves them out: move with --database"
            subject = name_variants(flag.name, environment)
            yield Line(Kind.CANNOT, subject, detail, project_id, flag.name)


def name_variants(flag: str, environment: str) -> str:
    return f"variants of flag {flag} in {environment}"


def _complete_variants(data: Document) -> None:
    """Adds members that imports require and SDKs ignore, or treat the same if missing."""
    for entry in (*data["featureStrategies"], *data["featureEnvironments"]):
        variants = [each for each in entry.get("variants", ()) if isinstance(each, dict)]
        for variant in variants:
            variant.setdefault("stickiness", "default")
            variant.setdefault("weightType", "variable")
        if variants and not any(each["weightType"] == "variable" for each in variants):
            variants[0]["weightType"] = "variable"


def _add_strategies_for_everybody(project_id: str, environment: str, data: Document) -> Iterator[Line]:
    """Adds a strategy to flags that are on without an enabled one: there they are on for everyone.

    Here, such a flag would get the default strategy of its environment, which may be for fewer users.
    """
    guarded = {each.get("featureName") for each in data["featureStrategies"] if not each.get("disabled")}
    for entry in data["featureEnvironments"]:
        name = entry.get("featureName")
        if entry.get("enabled") and name not in guarded:
            data["featureStrategies"].append({"name": "default", "featureName": name})
            detail = (
                "is on without an active strategy, so everybody has it. It gets a strategy for everybody here"
            )
            yield Line(Kind.NOTE, f"flag {name} in {environment}", detail, project_id, name or "")


def _turn_archived_off(data: Document, archived: Collection[str]) -> None:
    """Turns off archived flags. There they keep a switch without effect; a revived flag is off, there and here."""
    for flag in data["features"]:
        if flag["name"] in archived:
            flag["archived"] = True
    off = {flag["name"] for flag in data["features"] if flag.get("archived")}
    for entry in data["featureEnvironments"]:
        if entry.get("featureName") in off:
            entry["enabled"] = False


def _order_strategies(source: Source, project: SourceProject, flags: dict[str, Document]) -> None:
    """Sets the sort order of strategies of flags with several in an environment."""
    several: set[str] = set()
    for data in flags.values():
        seen: set[str] = set()
        for strategy in data["featureStrategies"]:
            name = strategy.get("featureName", "")
            (several if name in seen else seen).add(name)

    def read(name: str) -> dict[str, int]:
        path = f"/api/admin/projects/{quote(project.id, safe='')}/features/{quote(name, safe='')}"
        details = read_shape(source.address, path, source.get(path), FlagDetails)
        return {
            strategy.id: place
            for environment in details.environments
            for place, strategy in enumerate(
                sorted(environment.strategies, key=lambda each: each.sort_order or 0)
            )
        }

    places: dict[str, int] = {}
    for answer in source.for_each(read, sorted(several - project.archived)):
        places |= answer
    for data in flags.values():
        for strategy in data["featureStrategies"]:
            if (place := places.get(strategy.get("id", ""))) is not None:
                strategy["sortOrder"] = place
