"""The answer of /api/client/features, put together from the pieces of its projects."""

from collections.abc import Callable, Iterator, Mapping
from threading import Lock

from flagadmin.core.http.gzip_member import gzip_member
from sdk.features.chunks import Chunk, cut_into_chunks, replace_texts
from sdk.features.pieces import Piece, Place

_HEAD = Chunk((b'{"version":2,"features":[',))
_REFERENCES = 16  # bytes of memory for a flag: its places among a chunk's names and texts
KEPT = 16_000_000  # bytes: the largest body that is kept as it is
_PIECE = 100  # bytes of memory for a piece's place in an answer


class FeaturesAnswer:
    """The answer to one query at one state of its projects. Its bytes are made when first needed, and kept.

    Large ones are kept compressed only: most SDKs take gzip, and joining them takes a millisecond for a megabyte.
    """

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
        self._query = query
        self._meta = meta
        self._fixed = _PIECE * len(pieces) + _REFERENCES * sum(len(chunk.names) for chunk in flags)
        self._making = Lock()
        self._body = self._gzipped = b""

    @property
    def body(self) -> bytes:
        with self._making:
            body = self._body or self._join()
            if len(body) <= KEPT:
                self._body = body
            return body

    @property
    def gzipped(self) -> bytes:
        with self._making:
            if not self._gzipped:
                self._gzipped = gzip_member(
                    chunk.deflated for chunk in (_HEAD, *self.flags, *self._make_ending())
                )
            return self._gzipped

    def get_bytes(self, *, gzipped: bool) -> bytes:
        """The bytes if they have been made, else b"". Never waits."""
        return self._gzipped if gzipped else self._body

    @property
    def nbytes(self) -> int:
        """Without its pieces, which other answers share. Compressed chunks are about as large as ``gzipped``."""
        return self._fixed + len(self._body) + 2 * len(self._gzipped)

    def _join(self) -> bytes:
        # Joined at once: with a hundred thousand flags, copying them chunk by chunk doubles the time.
        texts = [text for chunk in self.flags for text in chunk.texts] or [b""]
        texts[0] = _HEAD.raw + texts[0]
        texts[-1] += b"".join(chunk.raw for chunk in self._make_ending())
        return b",".join(texts)

    def _make_ending(self) -> Iterator[Chunk]:
        """What stands behind the flags."""
        if self.segments is None:
            yield Chunk((b'],"query":%b,"meta":%b}' % (self._query, self._meta),))
        else:
            yield Chunk((b'],"query":%b,"segments":[' % self._query,))
            yield self.segments
            yield Chunk((b'],"meta":%b}' % self._meta,))


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
    """The flags that are not as before, by name. None if some are new or gone."""
    changed: dict[str, bytes] = {}
    for project, piece in after.items():
        known_piece = before[project]
        if piece is not known_piece:
            if piece.flags.keys() != known_piece.flags.keys():
                return None
            changed.update(flag for flag in piece.flags.items() if flag[1] != known_piece.flags[flag[0]])
    return changed
