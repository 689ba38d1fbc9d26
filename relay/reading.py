"""Parses the changed flags in an answer of the upstream, and reuses the others.

Parsing megabytes of JSON at once blocks the relay, and most changes affect one flag among thousands.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from typing import NamedTuple

import orjson

from flagadmin.core.document import Document

FLAGS = b'"features":['
COMMA = b","
MAX_STEP = 65_536  # bytes compared at once, to fit into the processor's cache


class Listing(NamedTuple):
    """An answer with the start of its list of flags, and the start and end of each flag."""

    content: bytes
    document: Document
    begin: int
    starts: list[int]
    ends: list[int]

    @property
    def end(self) -> int:
        return self.ends[-1] if self.ends else self.begin

    @property
    def mark(self) -> bytes:
        """The text after the flags, up to the value of the next member."""
        colon = self.content.find(b":", self.end)
        return self.content[self.end : colon + 1] if colon >= 0 else self.content[self.end :]


def locate_flags(content: bytes, document: Document) -> Listing | None:
    """Locates the flags. None unless they are formatted as by orjson."""
    begin = content.find(FLAGS) + len(FLAGS)
    places = _locate(content, begin, document["features"]) if begin >= len(FLAGS) else None
    return Listing(content, document, begin, *places) if places else None


def read_changed(content: bytes, before: Listing) -> Listing | None:
    """Parses only the changes. None if the whole must be parsed.

    The parsed flags, the reused ones and the rest are each complete JSON, so together they have the same meaning.
    """
    begin, end = before.begin, content.rfind(before.mark, before.begin)
    if end < 0 or not content.startswith(before.content[:begin]):
        return None
    first, last = _find_changed(before, content, end)
    start = before.ends[first - 1] if first else begin
    stop = end - (before.end - before.starts[last] if last < len(before.starts) else 0)
    try:
        changed = orjson.loads(b"[%b]" % content[start:stop].strip(COMMA))
        document = orjson.loads(content[:begin] + b"]}")
        document |= orjson.loads(b"{" + content[end + 1 :].removeprefix(COMMA))
    except orjson.JSONDecodeError:
        return None
    places = _locate(content, start + len(COMMA) if first else start, changed)
    if places is None:
        return None
    starts, ends = [*before.starts[:first], *places[0]], [*before.ends[:first], *places[1]]
    if content[ends[-1] if ends else begin : stop] != (COMMA if ends and stop < end else b""):
        return None
    known, moved = before.document["features"], end - before.end
    document["features"] = [*known[:first], *changed, *known[last:]]
    starts += [position + moved for position in before.starts[last:]]
    ends += [position + moved for position in before.ends[last:]]
    return Listing(content, document, begin, starts, ends)


def _locate(content: bytes, start: int, features: Iterable[Document]) -> tuple[list[int], list[int]] | None:
    starts, ends = [], []
    for flag in features:
        text = orjson.dumps(flag)
        if not content.startswith(text, start):
            return None
        starts.append(start)
        ends.append(start + len(text))
        start = ends[-1] + len(COMMA)
    return starts, ends


def _find_changed(before: Listing, new: bytes, new_end: int) -> tuple[int, int]:
    """The range of earlier flags within which there are changes. The new flags end at ``new_end``."""
    old, old_end, most = before.content, before.end, min(before.end, new_end)

    def is_same(start: int, stop: int) -> bool:
        return old[start:stop] == new[start:stop]

    def is_same_from_end(start: int, stop: int) -> bool:
        return old[old_end - stop : old_end - start] == new[new_end - stop : new_end - start]

    first = bisect_right(before.ends, _count_common(is_same, most))
    start = before.ends[first - 1] if first else before.begin
    common = _count_common(is_same_from_end, most - start)
    return first, max(first, bisect_left(before.starts, old_end - common))


def _count_common(is_same: Callable[[int, int], bool], most: int) -> int:
    """The length of the common beginning or end. Works in steps, because slices of megabytes would be copies."""
    same, step = 0, MAX_STEP
    while step:
        stop = same + step
        if stop <= most and is_same(same, stop):
            same = stop
        else:
            step //= 2
    return same
