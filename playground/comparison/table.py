"""Many contexts laid out by column, so that each test runs once per distinct value.

A set of contexts is a number with a byte for each context, the lowest for the first: `&`, `|` and `^` combine sets, and
`bit_count` counts them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, repeat
from typing import Any, NamedTuple, TypeAlias

from playground.engine.constraints import CompiledConstraint
from playground.engine.context import PARSERS, Context, find_sticky_text
from playground.engine.hashing import ROLLOUT_SEED, VARIANT_SEED, compute_hashes

Mask = int
DEFAULT_IDENTIFIER = ("identifier", "default")
SAMPLE = 256
"""Texts in a sample that shows whether most of a column differ."""
_CONSTANT = ("never", "undecidable")
"""Forms that are the same for every context."""


Indices: TypeAlias = "bytes | array[int] | None"


class Column(NamedTuple):
    """The values of a column, and the index of each context's value; None if each context has its own."""

    indices: Indices
    values: list[Any]


class ContextTable:
    """Contexts, with all computed values that two states can share."""

    def __init__(self, contexts: Sequence[Context]) -> None:
        self.contexts = contexts
        self.everyone: Mask = int.from_bytes(b"\1" * len(self), "little")
        self._distinct: dict[str | tuple[str, str], tuple[Indices, Sequence[str | None]]] = {}
        self._columns: dict[tuple[str, str], Column] = {}
        self._held: dict[int, tuple[CompiledConstraint, Mask]] = {}
        self._without: dict[tuple[str, str], Mask] = {}
        self._hashes: dict[tuple[tuple[str, str], bytes, int], list[int]] = {}
        self._buckets: dict[tuple[tuple[str, str], bytes], bytes] = {}
        self._shares: dict[tuple[tuple[str, str], bytes, tuple[int, ...]], list[tuple[int, Mask]]] = {}

    def __len__(self) -> int:
        return len(self.contexts)

    def column(self, pair: tuple[str, str]) -> Column:
        """The values in a form of a field."""
        column = self._columns.get(pair)
        if column is None:
            indices, texts = self._find_distinct_texts(pair)
            column = self._columns[pair] = Column(indices, _parse_all(pair[0], texts))
        return column

    def _find_distinct_texts(self, pair: tuple[str, str]) -> tuple[Indices, Sequence[str | None]]:
        """The index of each context's text, and the texts."""
        key = pair if pair == DEFAULT_IDENTIFIER or pair[0] in _CONSTANT else pair[1]
        distinct = self._distinct.get(key)
        if distinct is None:
            distinct = self._distinct[key] = _index_texts(list(self._list_texts(pair)))
        return distinct

    def _list_texts(self, pair: tuple[str, str]) -> Iterable[str | None]:
        if pair[0] in _CONSTANT:
            return repeat(None, len(self))
        if pair == DEFAULT_IDENTIFIER:
            return self._list_default_identifiers()
        return self._list_field_texts(pair[1])

    def _list_field_texts(self, field: str) -> Iterable[str | None]:
        return (context.values.get(field) for context in self.contexts)

    def _list_default_identifiers(self) -> Iterable[str | None]:
        return (find_sticky_text(context, "default") for context in self.contexts)

    def where(self, column: Column, chosen: bytes) -> Mask:
        """The contexts with the chosen values: `chosen` has a byte for each value, 1 or 0."""
        if column.indices is None:
            flags = chosen
        elif isinstance(column.indices, bytes):
            flags = column.indices.translate(chosen.ljust(256, b"\0"))
        else:
            flags = bytes(map(chosen.__getitem__, column.indices))
        return int.from_bytes(flags, "little")

    def test(self, column: Column, test: Callable[[Any], bool]) -> Mask:
        """The contexts whose value in a column passes the test."""
        return self.where(column, bytes(map(test, column.values)))

    def holds(self, constraint: CompiledConstraint, pair: tuple[str, str]) -> Mask:
        """The contexts for which a constraint holds; equal constraints of two states may be one object."""
        cached = self._held.get(id(constraint))
        if cached is None:
            mask = self.test(self.column(pair), constraint.test)
            cached = constraint, self.everyone ^ mask if constraint.inverted else mask
            self._held[id(constraint)] = cached
        return cached[1]

    def hashes(self, pair: tuple[str, str], key: bytes, seed: int) -> list[int]:
        """Hashes each distinct identifier (places are the remainder of the hash); an arbitrary number without one."""
        hashes_of_values = self._hashes.get((pair, key, seed))
        if hashes_of_values is None:
            identifiers = [value or b"" for value in self.column(pair).values]
            hashes_of_values = self._hashes[pair, key, seed] = compute_hashes(key, identifiers, seed)
        return hashes_of_values

    def within(self, pair: tuple[str, str], key: bytes, threshold: int) -> Mask:
        """The contexts in a rollout; arbitrary ones without an identifier."""
        buckets = self._buckets.get((pair, key))
        if buckets is None:
            hashed = self.hashes(pair, key, ROLLOUT_SEED)
            buckets = self._buckets[pair, key] = bytes([position % 100 for position in hashed])
        inside = buckets.translate(bytes(bucket < threshold for bucket in range(256)))
        return self.where(self.column(pair), inside)

    def shares(self, pair: tuple[str, str], key: bytes, limits: tuple[int, ...]) -> list[tuple[int, Mask]]:
        """The contexts that get each variant, arbitrary ones without an identifier. ``limits`` are
        cumulative weights.
        """
        shares = self._shares.get((pair, key, limits))
        if shares is None:
            column, total = self.column(pair), limits[-1]
            # The first variant whose limit reaches the place, which is one more than the remainder.
            chosen = [
                bisect_right(limits, position % total) for position in self.hashes(pair, key, VARIANT_SEED)
            ]
            shares = self._shares[pair, key, limits] = [
                (index, self.where(column, bytes(map(index.__eq__, chosen)))) for index in sorted(set(chosen))
            ]
        return shares

    def without(self, pair: tuple[str, str]) -> Mask:
        """The contexts without an identifier."""
        mask = self._without.get(pair)
        if mask is None:
            column = self.column(pair)
            mask = self._without[pair] = self.where(column, bytes([value is None for value in column.values]))
        return mask

    def positions(self, mask: Mask) -> Iterator[int]:
        """The positions of the contexts in a set."""
        return mask_positions(mask, len(self))


def mask_positions(mask: Mask, length: int) -> Iterator[int]:
    """Yields the positions of the contexts in a set of this length."""
    mask_bytes = mask.to_bytes(length, "little")
    position = mask_bytes.find(1)
    while position >= 0:
        yield position
        position = mask_bytes.find(1, position + 1)


def _index_texts(texts: list[str | None]) -> tuple[Indices, Sequence[str | None]]:
    """Indexes the distinct texts, so that each is computed once. That is not worthwhile if most differ, as a sample
    usually shows: then returns no indices, and all texts.
    """
    some = texts[:: max(1, len(texts) // SAMPLE)]
    if 2 * len(set(some)) > len(some) >= SAMPLE:
        return None, texts
    distinct = dict.fromkeys(texts)
    if 2 * len(distinct) > len(texts):
        return None, texts
    places = dict(zip(distinct, count(), strict=False))
    indices = map(places.__getitem__, texts)
    return bytes(indices) if len(distinct) <= 256 else array("I", indices), list(distinct)


def _parse_all(form: str, texts: Sequence[str | None]) -> list[Any]:
    """Parses each text in a form. Handles the two forms of user ids without a call per text."""
    if form == "text":
        return list(texts)
    if form == "identifier":
        return [None if text is None else text.encode() for text in texts]
    return list(map(PARSERS[form], texts))
