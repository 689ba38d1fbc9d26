"""Compiles variants, and picks the variant of an identifier."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from playground.engine.constraints import Shared
from playground.engine.context import Columns, Values
from playground.engine.hashing import VARIANT_SEED, Random, draw_places, hash_key, hash_places
from playground.engine.literals import objects_of, string_of, strings_of, to_text, weight_of

NONE = -1
"""The index if there is no variant."""

Payload = tuple[str, str]
"""The type and the value."""

Override = tuple[int, int, frozenset[str], str]
"""The index of the variant, the column, the values that select it, and the column's field."""


@dataclass(frozen=True, slots=True)
class CompiledVariants:
    """A compiled list of variants. `limits` are the cumulative weights; the first matching override wins.

    `payloads` is empty if no variant has one.
    """

    names: tuple[str, ...]
    limits: tuple[int, ...]
    total: int
    stickiness: str
    column: int
    key: bytes
    overrides: tuple[Override, ...] = ()
    payloads: tuple[Payload | None, ...] = ()
    divides: bool = False
    """Whether more than one variant has a weight."""

    def payload(self, index: int) -> Payload | None:
        return self.payloads[index] if self.payloads else None

    def pick(self, values: Values, random: Random) -> tuple[int, int]:
        """The index of the picked variant (NONE if there is none) and its place from 1 to `total`.

        The place is 0 if an override decided.
        """
        for index, column, expected, _ in self.overrides:
            if values[column] in expected:
                return index, 0
        if not self.total:
            return NONE, 0
        [place] = place_variants([self.key], [self.total], values[self.column], random)
        return bisect_left(self.limits, place), place


def place_variants(
    keys: list[bytes], totals: list[int], identifier: bytes | None, random: Random
) -> list[int]:
    """The place of an identifier among the weights of each list of variants; random without an identifier.

    The picked variant is the first whose cumulative weight reaches the place: `bisect_left(limits, place)`.
    """
    if identifier is None:
        return draw_places(totals, random)
    return hash_places(keys, totals, identifier, VARIANT_SEED)


def compile_strategy_variants(
    documents: object, parameters: Mapping[str, str], flag: str, columns: Columns, shared: Shared
) -> CompiledVariants | None:
    """Variants of a strategy: with its groupId (else the flag's name) and its stickiness."""
    stickiness = parameters.get("stickiness", "default")
    compiled = _compile(objects_of(documents), stickiness, parameters.get("groupId", flag), columns, shared)
    return compiled if compiled and compiled.total else None


def compile_flag_variants(
    documents: object, flag: str, columns: Columns, shared: Shared
) -> CompiledVariants | None:
    """Variants of a flag in an environment: hashed with its name and the stickiness of the first variant."""
    variants = objects_of(documents)
    stickiness = string_of(variants[0].get("stickiness")) if variants else None
    overrides = tuple(_compile_overrides(variants, columns))
    return _compile(
        variants, "default" if stickiness is None else stickiness, flag, columns, shared, overrides
    )


def _compile(
    variants: list[Mapping[str, Any]],
    stickiness: str,
    group: str,
    columns: Columns,
    shared: Shared,
    overrides: tuple[Override, ...] = (),
) -> CompiledVariants | None:
    if not variants:
        return None
    limits = shared(tuple(accumulate(weight_of(variant.get("weight")) for variant in variants)))
    return CompiledVariants(
        names=shared(tuple(shared(to_text(variant.get("name"))) for variant in variants)),
        limits=limits,
        total=limits[-1],
        stickiness=stickiness,
        column=columns.position("identifier", stickiness),
        key=shared(hash_key(group)),
        overrides=overrides,
        payloads=_compile_payloads(variants, shared),
        divides=len({0, *limits}) > 2,
    )


def _compile_payloads(variants: list[Mapping[str, Any]], shared: Shared) -> tuple[Payload | None, ...]:
    payloads = tuple(_compile_payload(variant.get("payload"), shared) for variant in variants)
    return shared(payloads) if any(payloads) else ()


def _compile_payload(document: object, shared: Shared) -> Payload | None:
    if document is None:
        return None
    if not isinstance(document, Mapping):
        return shared(("", shared(to_text(document))))
    return shared((shared(to_text(document.get("type"))), shared(to_text(document.get("value")))))


def _compile_overrides(variants: list[Mapping[str, Any]], columns: Columns) -> list[Override]:
    overrides: list[Override] = []
    for index, variant in enumerate(variants):
        for override in objects_of(variant.get("overrides")):
            field = string_of(override.get("contextName"))
            if field is not None:
                expected = frozenset(strings_of(override.get("values")))
                overrides.append((index, columns.position("text", field), expected, field))
    return overrides
