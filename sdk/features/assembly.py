"""The answer of /api/client/features, assembled from the pieces of its projects.

Builds the flag definitions that SDKs download and evaluate.

Strategies and variants have the same order as in the playground's engine, so that both give the same results.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from django.db import connections

from flagadmin.core.document import Document
from flagadmin.core.server.memory import collector_paused, trim_after_long_work
from playground.engine.definitions import SegmentDefinition, StrategyDefinition
from projects.definitions import FlagParts, read_flag_parts, read_id_batches, read_segments
from projects.revision import read_changed_flags
from sdk.features.chunks import Chunk, ChunkedBody, cut_into_chunks, replace_texts, write_text

_OVERHEAD = 120  # bytes of memory for a flag or segment, besides its text


class Place(NamedTuple):
    """The common properties of an answer's pieces, except their projects."""

    environment: str
    inline_segments: bool


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Piece:
    """The active flags of a project at a revision, by name, and the segments they use, by id, each as JSON.

    ``uses`` are the ids of the segments of each flag that has any. No flags but ``changed`` differ from those at the
    ``earlier`` revision, if there is one.
    """

    revision: int
    flags: Mapping[str, bytes]
    segments: Mapping[int, bytes]
    uses: Mapping[str, tuple[int, ...]]
    nbytes: int
    earlier: int | None = None
    changed: Collection[str] = ()

    def find_changed(self, before: "Piece") -> dict[str, bytes | None]:
        """The flags that differ from an earlier piece; None for those that it had and this one has not."""
        is_next = before.revision == self.earlier
        names = self.changed if is_next else before.flags.keys() | self.flags.keys()
        return {name: text for name in names if (text := self.flags.get(name)) != before.flags.get(name)}


latest: WeakValueDictionary[tuple[str, Place], Piece] = WeakValueDictionary()
"""The piece read last by project and place, while an answer or a history holds it."""


def read_pieces(revisions: Mapping[str, int], place: Place, *, using: str) -> dict[str, Piece]:
    """The pieces of projects at exactly these revisions, which the same transaction has read.

    In the given order. Reads only projects without such a piece, and of these only the flags changed since their
    latest piece, if the database still knows them.
    """
    known = {project: latest.get((project, place)) for project in revisions}
    pieces = {project: piece for project, piece in known.items() if piece}
    current = {project: piece for project, piece in pieces.items() if piece.revision == revisions[project]}
    other = place._replace(inline_segments=not place.inline_segments)
    texts = {
        project: _Text(known[project], latest.get((project, other)))
        for project in revisions
        if project not in current
    }
    before = {project: pieces[project].revision for project in texts if project in pieces}
    changed = read_changed_flags(before, revisions, using=using)
    for project, names in changed.items():
        texts[project].keep_all_but(pieces[project], names)
    whole = texts.keys() - changed.keys()
    if whole:
        _read(texts, whole, place, using=using)
    if names := set[str]().union(*changed.values()):
        _read(texts, changed, place, flags=names, using=using)
    for project, text in texts.items():
        current[project] = latest[project, place] = text.piece(revisions[project])
    return {project: current[project] for project in revisions}


@dataclass
class _Text:
    """The flags and segments of a project, while they are read.

    Unchanged flags share memory with the earlier ones, and flags without segments with the other place's.
    """

    before: Piece | None
    other: Piece | None
    flags: dict[str, bytes] = field(default_factory=dict)
    segments: dict[int, bytes] = field(default_factory=dict)
    uses: dict[str, tuple[int, ...]] = field(default_factory=dict)
    earlier: int | None = None
    changed: Collection[str] = ()

    def keep_all_but(self, piece: Piece, changed: Collection[str]) -> None:
        """Takes over the flags of an earlier piece except the changed ones, and all segments."""
        self.flags, self.uses, self.segments = dict(piece.flags), dict(piece.uses), dict(piece.segments)
        self.earlier, self.changed = piece.revision, changed
        for name in changed:
            self.flags.pop(name, None)
            self.uses.pop(name, None)

    def add(self, name: str, text: bytes, segments: Mapping[int, bytes]) -> None:
        known = (piece.flags.get(name) for piece in (self.before, self.other) if piece)
        self.flags[name] = next((each for each in known if each == text), text)
        if segments:
            self.uses[name] = tuple(segments)
            self.segments.update(segments)

    def piece(self, revision: int) -> Piece:
        used = set(chain.from_iterable(self.uses.values()))
        segments = {segment: text for segment, text in self.segments.items() if segment in used}
        held = sum(map(len, self.flags.values())) + sum(map(len, segments.values()))
        entries = len(self.flags) + len(segments)
        nbytes = held + _OVERHEAD * entries
        return Piece(revision, self.flags, segments, self.uses, nbytes, self.earlier, self.changed)


@trim_after_long_work()
@collector_paused
def _read(
    texts: Mapping[str, _Text],
    projects: Iterable[str],
    place: Place,
    *,
    flags: Collection[str] | None = None,
    using: str,
) -> None:
    segments: dict[int, bytes] = {}
    for batch in read_client_flags(
        projects, place.environment, inline_segments=place.inline_segments, flags=flags, using=using
    ):
        segments |= {segment["id"]: write_text(segment) for segment in batch.segments}
        for flag in batch.flags:
            its_segments = {segment: segments[segment] for segment in flag.segments}
            texts[flag.document["project"]].add(
                flag.document["name"], write_text(flag.document), its_segments
            )


_HEAD = Chunk((b'{"version":2,"features":[',))
_REFERENCES = 16  # bytes of memory for a flag: its places among a chunk's names and texts
_PIECE = 100  # bytes of memory for a piece's place in an answer


class FeaturesAnswer(ChunkedBody):
    """The answer to one query at one state of its projects."""

    def __init__(
        self,
        key: bytes,
        etag: str,
        place: Place,
        pieces: Mapping[str, Piece],
        *,
        flags: list[Chunk],
        segments: Chunk | None,
        query: bytes,
        meta: bytes,
    ) -> None:
        """``segments`` is None if they are inlined. ``query`` and ``meta`` are members of the answer, as JSON."""
        self.key = key
        self.etag = etag
        self.place = place
        self.pieces = pieces
        self.flags = flags
        self.segments = segments
        self._ending = _make_ending(segments, query, meta)
        self._fixed = _PIECE * len(pieces) + _REFERENCES * sum(len(chunk.names) for chunk in flags)
        super().__init__([_HEAD, *flags, *self._ending])

    @property
    def nbytes(self) -> int:
        """The size without its shared pieces. Compressed chunks are about as large as ``gzipped``."""
        return self._fixed + len(self._body) + 2 * len(self._gzipped)

    def _join(self) -> bytes:
        # Joined at once: with a hundred thousand flags, copying chunk by chunk doubles the time.
        texts = [text for chunk in self.flags for text in chunk.texts] or [b""]
        texts[0] = _HEAD.raw + texts[0]
        texts[-1] += b"".join(chunk.raw for chunk in self._ending)
        return b",".join(texts)


def _make_ending(segments: Chunk | None, query: bytes, meta: bytes) -> list[Chunk]:
    """Makes the part after the flags."""
    if segments is None:
        return [Chunk((b'],"query":%b,"meta":%b}' % (query, meta),))]
    return [
        Chunk((b'],"query":%b,"segments":[' % query,)),
        segments,
        Chunk((b'],"meta":%b}' % meta,)),
    ]


def make_flag_chunks(
    pieces: Mapping[str, Piece], matches: Callable[[str], bool], earlier: FeaturesAnswer | None
) -> list[Chunk]:
    """The flags of the pieces whose names match. ``earlier`` is an answer to the same query at another state."""
    if earlier is not None and earlier.pieces.keys() == pieces.keys():
        changed = _find_changed_flags(earlier.pieces, pieces)
        if changed is not None:
            texts = {name: text for name, text in changed.items() if matches(name)}
            replaced = replace_texts(earlier.flags, texts)
            if replaced is not None:
                return replaced
    flags = {name: text for piece in pieces.values() for name, text in piece.flags.items() if matches(name)}
    return cut_into_chunks(flags, earlier.flags if earlier is not None else ())


def make_segments_chunk(pieces: Mapping[str, Piece], earlier: FeaturesAnswer | None) -> Chunk:
    """The segments of the pieces, by id."""
    segments: dict[int, bytes] = {}
    for piece in pieces.values():
        segments.update(piece.segments)
    texts = tuple(segments[segment_id] for segment_id in sorted(segments))
    return Chunk(texts).reuse(earlier.segments if earlier is not None else None)


def _find_changed_flags(before: Mapping[str, Piece], after: Mapping[str, Piece]) -> dict[str, bytes] | None:
    """The changed flags by name. None if flags were added or removed."""
    changed: dict[str, bytes] = {}
    for project, piece in after.items():
        known_piece = before[project]
        if piece is not known_piece:
            for name, text in piece.find_changed(known_piece).items():
                if text is None or name not in known_piece.flags:
                    return None
                changed[name] = text
    return changed


_FLAGS = """
SELECT id, name, type, project_id, stale, description, impression_data FROM projects_flag
 WHERE id = ANY(%(ids)s) ORDER BY name COLLATE "C"
"""


class ClientFlag(NamedTuple):
    """An active flag as configured in an environment, and the ids of further segments that it needs."""

    document: Document
    segments: tuple[int, ...]


class ClientFlags(NamedTuple):
    """Some flags by name, and the ``segments`` that no earlier flags use."""

    flags: list[ClientFlag]
    segments: list[SegmentDefinition]


def read_client_flags(
    projects: Iterable[str],
    environment: str,
    *,
    inline_segments: bool,
    flags: Collection[str] | None = None,
    using: str = "default",
) -> Iterator[ClientFlags]:
    """Reads the projects' flags for SDKs, at most BATCH flags at once. Read them in one transaction.

    Only the given ``flags``, if any. ``inline_segments`` copies the constraints of segments into the strategies, for
    SDKs without segment support.
    """
    segments: dict[int, SegmentDefinition] = {}
    with connections[using].cursor() as cursor:
        for ids in read_id_batches(cursor, projects, flags):
            parts = read_flag_parts(cursor, ids, environment)
            new = read_segments(cursor, parts.segments.difference(segments))
            segments |= new
            cursor.execute(_FLAGS, {"ids": ids})
            inlined = segments if inline_segments else None
            read = [_make_client_flag(row, parts, inlined) for row in cursor.fetchall()]
            yield ClientFlags(read, [] if inline_segments else list(new.values()))


def _make_client_flag(
    row: tuple[Any, ...], parts: FlagParts, inlined: Mapping[int, SegmentDefinition] | None
) -> ClientFlag:
    document = _make_flag(row, parts, inlined)
    if inlined is not None:
        return ClientFlag(document, ())
    strategies = parts.strategies.get(row[0], ())
    return ClientFlag(document, tuple(chain(*(strategy["segments"] for strategy in strategies))))


def _make_flag(
    row: tuple[Any, ...], parts: FlagParts, inlined: Mapping[int, SegmentDefinition] | None
) -> Document:
    flag_id, name, kind, project, stale, description, impression_data = row
    strategies = parts.strategies.get(flag_id, [])
    active = [_make_strategy(strategy, inlined) for strategy in strategies if not strategy["disabled"]]
    enabled, variants = parts.read_state(flag_id)
    flag = {
        "name": name,
        "type": kind,
        # Disabled strategies are left out. SDKs evaluate an empty list as on, so such a flag must be off.
        "enabled": enabled and (bool(active) or not strategies),
        "project": project,
        "stale": stale,
        "strategies": active,
        "variants": variants,
        "description": description,
        "impressionData": impression_data,
    }
    parents = parts.parents.get(flag_id)
    return flag | {"dependencies": parents} if parents else flag


def _make_strategy(strategy: StrategyDefinition, inlined: Mapping[int, SegmentDefinition] | None) -> Document:
    document: Document = {
        "name": strategy["name"],
        "constraints": strategy["constraints"],
        "parameters": strategy["parameters"],
        "variants": strategy["variants"],
    }
    if inlined is not None:
        for segment in strategy["segments"]:
            document["constraints"] = document["constraints"] + inlined[segment]["constraints"]
    elif strategy["segments"]:
        document["segments"] = strategy["segments"]
    return document
