"""Presents the parts of a flag on the pages that revert them, and lists the edits that reverting makes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from projects.drafts import ExactDraft, FlagEdit, find_enabled_places
from projects.history.field_changes import FieldChange, list_part_changes
from projects.history.flag_parts import DEPENDENCIES, DETAILS, ENVIRONMENT, FlagPart
from projects.models import Environment, Flag
from projects.reverts.parts import PlannedPart

_LABELS = {DEPENDENCIES: "Dependencies", DETAILS: "Description and settings"}


class ShownPart(NamedTuple):
    """``notes`` are what will not be quite as it was. ``label`` is "" for what has no parts, such as a segment."""

    label: str
    changes: Sequence[FieldChange]
    notes: Sequence[str] = ()


def show_part(planned: PlannedPart, segments: Mapping[int, str]) -> ShownPart:
    """``segments`` are names by id."""
    part = planned.part
    notes = [f"Note: {note.message}." for note in planned.notes]
    return ShownPart(part.environment or _LABELS[part.kind], list_part_changes(part, segments), notes)


def list_part_edits(flag: Flag, parts: Iterable[FlagPart]) -> Iterator[FlagEdit]:
    """Lists the edits that writing these parts makes, in the order of the environments."""
    changes: dict[str, dict[str, Any]] = {}
    common: dict[str, Any] = {}
    for part in parts:
        if part.kind == ENVIRONMENT:
            changes[part.environment] = dict(part.after)
        elif part.kind == DEPENDENCIES:
            common |= part.after
    if common:
        changes |= {place: changes.get(place, {}) for _, place in find_enabled_places([flag])}
    for place in Environment.objects.names():
        if place in changes:
            draft = ExactDraft(flag.name, changes[place] | common)
            yield FlagEdit(flag.project_id, flag.name, place, draft)
