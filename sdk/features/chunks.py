"""Cuts the flags of an SDK answer into chunks that are compressed one by one.

Where a chunk begins depends on the flags alone and not on earlier answers, so that all workers send the same bytes.
"""

import zlib
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import orjson

from flagadmin.core.http.gzip_member import Deflated, deflate

SIZE = 65_536  # mean number of bytes


class Chunk:
    """Consecutive parts of an answer: flags by ``names``, or anything else without names. Immutable."""

    __slots__ = ("_deflated", "names", "opening", "texts")

    def __init__(self, texts: tuple[bytes, ...], names: tuple[str, ...] = (), opening: bytes = b"") -> None:
        """``texts`` are separated by commas, behind the ``opening``."""
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
        """Compressed when first needed, and kept."""
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
        """The earlier chunk if it is the same: it may be compressed already."""
        same = earlier is not None and self._contents() == earlier._contents()
        return earlier if same and earlier is not None else self

    def _contents(self) -> tuple[object, ...]:
        return self.names, self.texts, self.opening


def write_text(document: Mapping[str, Any]) -> bytes:
    """The JSON of a flag or a segment."""
    # A copy, because orjson's own bytes keep the buffer that they were written to: 4 kB for a flag of one.
    return bytes(memoryview(orjson.dumps(document)))


def cut_into_chunks(flags: Mapping[str, bytes], earlier: Iterable[Chunk] = ()) -> list[Chunk]:
    """The flags in the order of their names. Chunks that are as they were ``earlier`` are taken over."""
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
    """The chunks with other texts for some of their flags. None if a chunk must begin elsewhere then."""
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
    """Whether a flag begins a chunk. The larger, the likelier, so that chunks of large flags are no larger."""
    return zlib.crc32(name.encode()) % SIZE < len(text)
