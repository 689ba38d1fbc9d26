"""Exports flags as a JSON document and records an audit event."""

from collections.abc import Iterator
from dataclasses import dataclass

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.document import Document
from groups.access import Caller
from playground.models import SavedContext
from playground.saved_contexts.queries import select_visible_expectations
from projects.access import check_environment, check_project
from projects.export import export_flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The selection to export. For an import into flagadmin, ``full_segments`` adds the constraints of segments and
    the payload schemas of flags, and ``saved_contexts`` the member ``savedContexts``. Other importers refuse them.
    """

    environment: str
    features: tuple[str, ...] = ()
    tag: str | None = None
    project: str | None = None
    full_segments: bool = False
    saved_contexts: bool = False


def list_saved_context_entries(document: Document, environment: str, caller: Caller) -> Iterator[Document]:
    """The saved contexts of the flags' projects, and those of no project with expectations of these flags.

    Includes their expectations of these flags in the environment.
    """
    flags = {feature["name"] for feature in document["features"]}
    projects = {feature["project"] for feature in document["features"]}
    contexts = list(SavedContext.objects.readable_by(caller).usable_in(*projects))
    visible = select_visible_expectations(caller, contexts)
    for saved in contexts:
        expectations = [
            {key: value for key, value in expectation.items() if key != "environment"}
            for expectation in visible[saved.pk]
            if expectation["flag"] in flags and expectation["environment"] == environment
        ]
        if saved.project_id or expectations:
            yield {
                "name": saved.name,
                "project": saved.project_id,
                "context": saved.context,
                "note": saved.note,
                "expectations": expectations,
            }


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
        if selection.saved_contexts:
            document["savedContexts"] = list(
                list_saved_context_entries(document, selection.environment, caller)
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
