"""Reads the flags that have changed in an answer of the upstream, and takes over the others.

JSON of megabytes is parsed in one go, in which a relay answers nobody; most changes are of one flag among thousands.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from typing import NamedTuple

import orjson

from flagadmin.core.document import Document

FLAGS = b'"features":['
COMMA = b","
MAX_STEP = 65_536  # bytes that are compared at once, which fit into the processor's cache


class Listing(NamedTuple):
    """An answer, with where in it the list of flags begins, and each of them begins and ends."""

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
        """What stands after the flags, up to the value of the next member."""
        colon = self.content.find(b":", self.end)
        return self.content[self.end : colon + 1] if colon >= 0 else self.content[self.end :]


def locate_flags(content: bytes, document: Document) -> Listing | None:
    """None unless the flags are written as orjson writes them."""
    begin = content.find(FLAGS) + len(FLAGS)
    places = _locate(content, begin, document["features"]) if begin >= len(FLAGS) else None
    return Listing(content, document, begin, *places) if places else None


def read_changed(content: bytes, before: Listing) -> Listing | None:
    """Parses what is not as before. None if the whole must be parsed.

    The flags that are parsed, those taken over and the rest are complete JSON each, so together they mean the same.
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
    """The positions among the flags before between which something has changed. The new flags end at ``new_end``."""
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
    """The length of what both begin with, or end with. In steps: slices of megabytes would be copies."""
    same, step = 0, MAX_STEP
    while step:
        stop = same + step
        if stop <= most and is_same(same, stop):
            same = stop
        else:
            step //= 2
    return same
