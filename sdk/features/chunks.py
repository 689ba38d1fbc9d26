"""Cuts the flags of an SDK answer into chunks that are compressed one by one.

The cuts depend only on the flags, not on earlier answers, so that all workers send the same bytes.
"""

import zlib
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from threading import Lock
from typing import Any

import orjson

from flagadmin.core.http.gzip_member import Deflated, deflate, make_gzip_member

SIZE = 65_536  # mean number of bytes


class Chunk:
    """Consecutive parts of an answer: flags by ``names``, or anything else without names. Immutable."""

    __slots__ = ("_deflated", "names", "opening", "texts")

    def __init__(self, texts: tuple[bytes, ...], names: tuple[str, ...] = (), opening: bytes = b"") -> None:
        """``texts`` are joined with commas, after the ``opening``."""
        self.texts = texts
        self.names = names
        self.opening = opening
        self._deflated: Deflated | None = None

    @property
    def raw(self) -> bytes:
        return self.opening + b",".join(self.texts)

    @property
    def size(self) -> int:
        """The number of bytes of ``raw``."""
        return len(self.opening) + sum(map(len, self.texts)) + max(0, len(self.texts) - 1)

    def parts(self) -> Iterator[bytes]:
        """Yields the parts that ``raw`` is joined from."""
        yield self.opening
        for at, text in enumerate(self.texts):
            if at:
                yield b","
            yield text

    @property
    def deflated(self) -> Deflated:
        """The compressed chunk, created on first use and kept."""
        if self._deflated is None:
            self._deflated = deflate(self.raw)
        return self._deflated

    def replace(self, changed: Mapping[str, bytes]) -> "Chunk":
        """This chunk with other texts for some of its names."""
        texts = list(self.texts)
        for name, text in changed.items():
            texts[bisect_left(self.names, name)] = text
        return Chunk(tuple(texts), self.names, self.opening)

    def reuse(self, earlier: "Chunk | None") -> "Chunk":
        """The earlier chunk if it is equal, because it may already be compressed."""
        same = earlier is not None and self._contents() == earlier._contents()
        return earlier if same and earlier is not None else self

    def _contents(self) -> tuple[object, ...]:
        return self.names, self.texts, self.opening


def write_text(document: Mapping[str, Any]) -> bytes:
    """The JSON of a flag or a segment."""
    # A copy, because orjson's own bytes keep their buffer: 4 kB for a flag of one.
    return bytes(memoryview(orjson.dumps(document)))


def cut_into_chunks(flags: Mapping[str, bytes], earlier: Iterable[Chunk] = ()) -> list[Chunk]:
    """The flags sorted by name. Reuses chunks that are unchanged since ``earlier``."""
    known = {chunk.names[0]: chunk for chunk in earlier}
    names = sorted(flags)
    texts = [flags[name] for name in names]
    starts = [at for at, flag in enumerate(zip(names, texts, strict=True)) if at == 0 or _is_beginning(*flag)]
    chunks = []
    for start, end in pairwise([*starts, len(names)]):
        chunk = Chunk(tuple(texts[start:end]), tuple(names[start:end]), b"," if start else b"")
        chunks.append(chunk.reuse(known.get(chunk.names[0])))
    return chunks


def replace_texts(chunks: Sequence[Chunk], changed: Mapping[str, bytes]) -> list[Chunk] | None:
    """The chunks with other texts for some of their flags. None if that would move a chunk's beginning."""
    firsts = [chunk.names[0] for chunk in chunks]
    by_chunk: dict[int, dict[str, bytes]] = defaultdict(dict)
    for name, text in changed.items():
        by_chunk[bisect_right(firsts, name) - 1][name] = text
    replaced = list(chunks)
    for position, its_changes in by_chunk.items():
        before, after = chunks[position], chunks[position].replace(its_changes)
        if _find_beginnings(before) != _find_beginnings(after):
            return None
        replaced[position] = after
    return replaced


def _find_beginnings(chunk: Chunk) -> list[bool]:
    return [_is_beginning(*flag) for flag in zip(chunk.names, chunk.texts, strict=True)]


def _is_beginning(name: str, text: bytes) -> bool:
    """Whether a flag begins a chunk. Larger flags are likelier to, so that chunks of large flags are not larger."""
    return zlib.crc32(name.encode()) % SIZE < len(text)


MAX_KEPT = 16_000_000  # bytes of the largest body that is kept uncompressed


class ChunkedBody:
    """Keeps its bytes, large ones only in compressed form: most SDKs accept gzip, and joining them takes a millisecond
    per megabyte.
    """

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self._making = Lock()
        self._body = self._gzipped = b""

    @property
    def body(self) -> bytes:
        # Without a lock: an event loop would wait for the thread that compresses.
        body = self._body or self._join()
        if len(body) <= MAX_KEPT:
            self._body = body
        return body

    def join_small(self) -> None:
        """Joins the body, unless it is too large to keep."""
        if sum(chunk.size for chunk in self._chunks) <= MAX_KEPT:
            self._body = self._join()

    def parts(self) -> Iterator[bytes]:
        """Yields the parts of the body; the whole, if it is kept."""
        if self._body:
            yield self._body
            return
        for chunk in self._chunks:
            yield from chunk.parts()

    @property
    def gzipped(self) -> bytes:
        with self._making:
            if not self._gzipped:
                self._gzipped = make_gzip_member(chunk.deflated for chunk in self._chunks)
            return self._gzipped

    def get_bytes(self, *, gzipped: bool) -> bytes:
        """The bytes if they exist already, else b"". Never waits."""
        return self._gzipped if gzipped else self._body

    def _join(self) -> bytes:
        return b"".join(chunk.raw for chunk in self._chunks)
