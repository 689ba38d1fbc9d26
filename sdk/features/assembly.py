"""The answer of /api/client/features, put together from the pieces of its projects."""

from collections.abc import Callable, Mapping

from sdk.features.body import ChunkedBody
from sdk.features.chunks import Chunk, cut_into_chunks, replace_texts
from sdk.features.pieces import Piece, Place

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
        """The size without its pieces, which others share. Compressed chunks are about as large as ``gzipped``."""
        return self._fixed + len(self._body) + 2 * len(self._gzipped)

    def _join(self) -> bytes:
        # Joined at once: with a hundred thousand flags, copying them chunk by chunk doubles the time.
        texts = [text for chunk in self.flags for text in chunk.texts] or [b""]
        texts[0] = _HEAD.raw + texts[0]
        texts[-1] += b"".join(chunk.raw for chunk in self._ending)
        return b",".join(texts)


def _make_ending(segments: Chunk | None, query: bytes, meta: bytes) -> list[Chunk]:
    """Makes the part behind the flags."""
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
    """The flags that are not as before, by name. None if some are new or gone."""
    changed: dict[str, bytes] = {}
    for project, piece in after.items():
        known_piece = before[project]
        if piece is not known_piece:
            if piece.flags.keys() != known_piece.flags.keys():
                return None
            changed.update(flag for flag in piece.flags.items() if flag[1] != known_piece.flags[flag[0]])
    return changed
