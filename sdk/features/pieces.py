"""Serializes each project's flags separately, so that a change costs no more than its project."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakValueDictionary

from flagadmin.core.server.memory import collector_paused, trim_after_long_work
from sdk.features.chunks import write_text
from sdk.features.documents import read_client_flags

_OVERHEAD = 120  # bytes of memory for a flag or segment, beside its text


class Place(NamedTuple):
    """The common properties of the pieces of an answer, besides their projects."""

    environment: str
    inline_segments: bool


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Piece:
    """The active flags of a project at a revision, by name, and the segments they use, by id, each as JSON."""

    revision: int
    flags: Mapping[str, bytes]
    segments: Mapping[int, bytes]
    nbytes: int


latest: WeakValueDictionary[tuple[str, Place], Piece] = WeakValueDictionary()
"""The piece read last by project and place, as long as an answer or a history holds it."""


def read_pieces(revisions: Mapping[str, int], place: Place, *, using: str) -> dict[str, Piece]:
    """The pieces of projects at exactly these revisions, which the same transaction has read.

    In their order. Only projects of which there is none yet are read.
    """
    known = {project: latest.get((project, place)) for project in revisions}
    current = {
        project: piece for project, piece in known.items() if piece and piece.revision == revisions[project]
    }
    other = place._replace(inline_segments=not place.inline_segments)
    changed = {
        project: _Text(known[project], latest.get((project, other)))
        for project in revisions
        if project not in current
    }
    if changed:
        _read(changed, place, using=using)
    for project, text in changed.items():
        current[project] = latest[project, place] = text.piece(revisions[project])
    return {project: current[project] for project in revisions}


@dataclass
class _Text:
    """The flags and segments of a project as they are read.

    Flags that are as they were before share their memory, and those without segments that with the other place's.
    """

    before: Piece | None
    other: Piece | None
    flags: dict[str, bytes] = field(default_factory=dict)
    segments: dict[int, bytes] = field(default_factory=dict)

    def add(self, name: str, text: bytes) -> None:
        known = (piece.flags.get(name) for piece in (self.before, self.other) if piece)
        self.flags[name] = next((each for each in known if each == text), text)

    def piece(self, revision: int) -> Piece:
        held = sum(map(len, self.flags.values())) + sum(map(len, self.segments.values()))
        entries = len(self.flags) + len(self.segments)
        return Piece(revision, self.flags, self.segments, held + _OVERHEAD * entries)


@trim_after_long_work()
@collector_paused
def _read(projects: Mapping[str, _Text], place: Place, *, using: str) -> None:
    segments: dict[int, bytes] = {}
    for batch in read_client_flags(
        projects, place.environment, inline_segments=place.inline_segments, using=using
    ):
        segments |= {segment["id"]: write_text(segment) for segment in batch.segments}
        for flag in batch.flags:
            text = projects[flag.document["project"]]
            text.add(flag.document["name"], write_text(flag.document))
            text.segments.update((segment, segments[segment]) for segment in flag.segments)
