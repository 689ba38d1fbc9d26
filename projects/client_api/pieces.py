"""Serialises the flags of each project by itself, so that a change costs no more than its project."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

import orjson

from flagadmin.server.gc_control import gc_paused
from projects.client_api.documents import ClientFlags, client_flags

PROJECTS = 16  # read at once: the documents of all flags would take many times the memory of their texts
_OVERHEAD = 120  # bytes of memory for a flag or segment, beside its text


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """The active flags of a project at a revision, by name, and the segments they use, by id, each as JSON."""

    revision: int
    flags: Mapping[str, bytes]
    segments: Mapping[int, bytes]
    nbytes: int


@gc_paused
def read_pieces(
    revisions: Mapping[str, int],
    environment: str,
    *,
    inline_segments: bool,
    earlier: Mapping[str, Piece],
    using: str,
) -> dict[str, Piece]:
    """The pieces of projects at exactly these revisions, which the same transaction has read.

    Flags that are as they were in an ``earlier`` piece of the project share its memory.
    """
    pieces: dict[str, Piece] = {}
    rest = iter(revisions)
    while projects := list(islice(rest, PROJECTS)):
        read = client_flags(projects, environment, inline_segments=inline_segments, using=using)
        for project in projects:
            pieces[project] = _piece(revisions[project], read[project], earlier.get(project))
    return pieces


def _piece(revision: int, read: ClientFlags, earlier: Piece | None) -> Piece:
    known: Mapping[str, bytes] = earlier.flags if earlier else {}
    flags = {}
    for flag in read.flags:
        name, text = flag["name"], orjson.dumps(flag)
        before = known.get(name)
        flags[name] = before if before == text else text
    segments = {segment["id"]: orjson.dumps(segment) for segment in read.segments}
    held = sum(map(len, flags.values())) + sum(map(len, segments.values()))
    return Piece(revision, flags, segments, held + _OVERHEAD * (len(flags) + len(segments)))
