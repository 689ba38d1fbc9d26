"""Exports flags as a JSON document and records an audit event."""

from dataclasses import dataclass

from flagadmin.audit.events import EventType
from flagadmin.audit.record import Event, record
from flagadmin.db.transactions import consistent_reads
from groups.access import Caller
from projects.access import check_environment, check_project
from projects.export import Document, export_flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What to export. ``full_segments`` adds the constraints of segments, for an import into flagadmin."""

    environment: str
    features: tuple[str, ...] = ()
    tag: str | None = None
    project: str | None = None
    full_segments: bool = False


def export_selection(selection: Selection, *, caller: Caller) -> Document:
    """The export document. Raises ValidationError for an unknown environment or project.

    Everything is read in one database snapshot.
    """
    with consistent_reads(read_only=False):
        check_environment(selection.environment)
        if selection.project is not None:
            check_project(caller, selection.project)
        document = export_flags(
            selection.environment,
            names=selection.features,
            tag=selection.tag,
            project=selection.project,
            readable=caller.readable_projects,
            full_segments=selection.full_segments,
        )
        record(
            Event(
                type=EventType.FEATURES_EXPORTED,
                project=selection.project,
                environment=selection.environment,
                after={"features": len(document["features"])},
            ),
            actor=caller,
        )
    return document
