"""Writes our flags to an Unleash server, as far as its free edition supports them, or makes its import files.

Changes existing objects there, and deletes nothing. Each import is atomic there; all of them together are not.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

import orjson

from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.document import Document
from flagadmin.core.errors import NotFound, choices, pluralize
from groups.models import ApiToken
from importer.moving.reading.read import read_version
from importer.moving.reading.shapes import Overview, Shape, read_shape
from importer.moving.reading.source import Source
from importer.moving.report import Kind, Line, Report
from playground.engine.context import TOP_LEVEL
from playground.engine.strategy_types import FLEXIBLE_ROLLOUT
from projects.export import export_flags
from projects.models import ContextField, Flag, Project, Segment, StrategyType, TagType
from projects.rules import Limits
from projects.segments.rules import count_values
from projects.strategies.rules import TOTAL_WEIGHT

MOST_VALUES = Limits().segment_values
"""Values of a segment that a server accepts by default."""
IMPORT = "/api/admin/features-batch/import"
NEEDS_PERSON = (
    "Unleash refuses them with an admin token. Create a personal token (user:…) of an admin there, in the profile, and "
    "give that one"
)


class _Named(Shape):
    id: int = 0
    name: str
    constraints: list[Document] = []


def read_bodies(projects: Iterable[str]) -> Iterator[Document]:
    """An import body for each environment of the projects, or of all, without archived flags. Raises NotFound."""
    rows = Project.objects.active().order_by("id")
    if chosen := list(projects):
        known = set(rows.values_list("id", flat=True))
        if unknown := sorted({*chosen} - known):
            raise NotFound(f"No project {choices(unknown)} here. Available: {choices(known) or 'none'}.")
        rows = rows.filter(id__in=chosen)
    with consistent_reads():
        for project in rows:
            for link in project.environment_links.order_by("environment__sort_order", "environment_id"):
                data = export_flags(link.environment_id, project=project.id)
                if data["features"]:
                    yield {"project": project.id, "environment": link.environment_id, "data": data}


def write_files(folder: Path, bodies: Iterable[Document], *, write: bool) -> Iterator[Line]:
    """``FOLDER/PROJECT.ENVIRONMENT.json``, for ``POST /api/admin/features-batch/import`` there. Raises OSError."""
    if write:
        folder.mkdir(parents=True, exist_ok=True)
    for body in bodies:
        name = f"{quote(body['project'], safe='')}.{quote(body['environment'], safe='')}.json"
        if write:
            (folder / name).write_bytes(orjson.dumps(body, option=orjson.OPT_INDENT_2))
        yield Line(
            Kind.CREATE, f"file {name}", pluralize(len(body["data"]["features"]), "flag"), body["project"]
        )


def move_back(target: Source, projects: Iterable[str], *, write: bool) -> Report:
    """Moves back. Writes nothing if the report is refused.

    Raises SourceError; everything written until then stays there, and a second run writes the rest.
    """
    read_version(target)
    report = Report()
    if not target.has_personal_token:
        report.lines.append(Line(Kind.REFUSE, f"imports into {target.address}", NEEDS_PERSON))
        if write:
            return report
    if long_lists := list(_find_long_lists(target)):
        report.lines += long_lists
        if write:
            return report
    bodies = list(read_bodies(projects))
    report.lines += _write_shared(target, write=write)
    places = {
        project: _find_environments(target, project) for project in {body["project"] for body in bodies}
    }
    for body in bodies:
        target.begin(f"Writing flags of {body['project']} / {body['environment']}")
        report.lines.append(_write_flags(target, body, places[body["project"]], write=write))
        report.lines += _name_completed(body)
    report.lines += _name_what_stays()
    return report


def _find_long_lists(target: Source) -> Iterator[Line]:
    """Segments with more values than the server accepts; without them, it refuses the flags that use them."""
    counts = {segment.name: count_values(segment.constraints) for segment in Segment.objects.order_by("id")}
    if max(counts.values(), default=0) <= MOST_VALUES:
        return
    raw = target.find("/api/admin/ui-config")
    limits = raw.get("resourceLimits") if isinstance(raw, dict) else None
    most = limits.get("segmentValues") if isinstance(limits, dict) else None
    most = most if isinstance(most, int) else MOST_VALUES
    for name, count in counts.items():
        if count > most:
            detail = (
                f"has {count:,} values, and the server accepts {most:,}: raise its limit, or shorten the list"
            )
            yield Line(Kind.REFUSE, f"segment {name}", detail)


def _write_shared(target: Source, *, write: bool) -> Iterator[Line]:
    types = StrategyType.objects.filter(built_in=False)
    yield from _add(
        target,
        "strategy type",
        "/api/admin/strategies",
        "strategies",
        map(StrategyType.document, types),
        write,
    )
    yield from _add(
        target,
        "tag type",
        "/api/admin/tag-types",
        "tagTypes",
        map(TagType.document, TagType.objects.all()),
        write,
    )
    fields = map(ContextField.document, ContextField.objects.filter(project=None).exclude(name__in=TOP_LEVEL))
    yield from _add(target, "context field", "/api/admin/context", None, fields, write)
    yield from _write_segments(target, write=write)


def _add(
    target: Source, noun: str, path: str, member: str | None, documents: Iterable[Document], write: bool
) -> Iterator[Line]:
    """Adds the missing objects there."""
    known = {row.name for row in _list(target, path, member)}
    for document in documents:
        if document["name"] in known:
            continue
        if write:
            kept = {key: value for key, value in document.items() if value is not None and key not in _OURS}
            target.send("POST", path, kept)
        yield Line(Kind.CREATE, f"{noun} {document['name']}")


_OURS = {"id", "createdAt", "createdBy", "displayName", "editable", "project"}
"""Members of documents that are not written."""


def _write_segments(target: Source, *, write: bool) -> Iterator[Line]:
    """Writes segments. A project's segments become segments of all projects if the server lacks the project."""
    path = "/api/admin/segments"
    known = {row.name: row for row in _list(target, path, "segments")}
    for segment in Segment.objects.order_by("id"):
        full = segment.document()
        document = {key: full[key] for key in ("name", "description", "constraints")}
        present = known.get(segment.name)
        if present is None:
            if write:
                target.send("POST", path, document)
            yield Line(Kind.CREATE, f"segment {segment.name}")
        elif _list_written(present.constraints) != _list_written(segment.constraints):
            if write:
                target.send("PUT", f"{path}/{present.id}", document)
            yield Line(Kind.CHANGE, f"segment {segment.name}", "its constraints")


def _list_written(constraints: Iterable[Document]) -> list[Document]:
    """The members that are not empty."""
    return [
        {key: value for key, value in constraint.items() if value not in (None, False, [], "")}
        for constraint in constraints
    ]


def _find_environments(target: Source, project: str) -> set[str] | None:
    """The environments of the project there; None if the project does not exist there."""
    path = f"/api/admin/projects/{quote(project, safe='')}/overview"
    raw = target.find(path)
    if raw is None:
        return None
    return {used.environment for used in read_shape(target.address, path, raw, Overview).environments}


def _write_flags(target: Source, body: Document, there: set[str] | None, *, write: bool) -> Line:
    flags = pluralize(len(body["data"]["features"]), "flag")
    subject = f"{flags} of {body['project']} / {body['environment']}"
    if there is None:
        return Line(
            Kind.CANNOT,
            subject,
            "there is no such project, and the free edition has only one",
            body["project"],
        )
    if body["environment"] not in there:
        return Line(Kind.CANNOT, subject, "the project there does not use the environment", body["project"])
    if write:
        target.send("POST", IMPORT, body)
    return Line(Kind.CHANGE, subject, "imported" if write else "to be imported", body["project"])


def _name_completed(body: Document) -> Iterator[Line]:
    """Names strategies that imports there complete differently from SDKs, so that users get other results."""
    for strategy in body["data"]["featureStrategies"]:
        parameters, variants = strategy["parameters"], strategy.get("variants") or ()
        completed = [
            name
            for name in ("rollout", "stickiness", "groupId")
            if strategy["name"] == FLEXIBLE_ROLLOUT
            and (name not in parameters or (name != "rollout" and not parameters[name]))
        ]
        if variants and sum(each["weight"] for each in variants) != TOTAL_WEIGHT:
            completed.append("weights of variants")
        if completed:
            flag = strategy["featureName"]
            detail = f"imports there complete its {' and '.join(completed)}, so users get other results: set them here"
            subject = f"a strategy of {flag} in {body['environment']}"
            yield Line(Kind.CANNOT, subject, detail, body["project"], flag)


def _name_what_stays() -> Iterator[Line]:
    if archived := Flag.objects.exclude(archived_at=None).count():
        yield Line(Kind.CANNOT, f"{archived:,} archived flags", "imports there leave them out")
    tokens = ApiToken.objects.filter(kind__in=("backend", "frontend")).count()
    if tokens:
        detail = "are stored as hashes: those that came from there still work there, create the others"
        yield Line(Kind.CANNOT, f"secrets of {tokens:,} SDK tokens", detail)
    named = (
        "people, roles, change requests, release plans, settings of projects, saved contexts, payload schemas"
    )
    yield Line(Kind.CANNOT, named, "stay here")


def _list(target: Source, path: str, member: str | None) -> list[_Named]:
    raw = target.get(path)
    if member is not None:
        raw = raw.get(member) if isinstance(raw, dict) else None
    return read_shape(target.address, path, raw, list[_Named])
