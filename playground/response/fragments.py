"""Serializes the parts of a flag's answer that do not depend on the context, when the flag is compiled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from playground.engine.coercion import objects_of, parameters_of, to_text
from playground.engine.flags import CompiledFlag, CompiledSegment
from playground.engine.sharing import Shared
from playground.engine.strategies import CompiledStrategy, Mode
from playground.response.json_text import as_json
from playground.response.memory import FLAG, measure_segment, measure_strategy

TRUE, FALSE = b"true", b"false"


Cuts = tuple[bytes, ...]
"""A list of constraints, cut where their results belong: one follows each. Most flags have those of others."""


def write_results(cuts: Cuts, bits: int) -> bytes:
    """The constraints with the results that these bits stand for; the first one has the lowest bit."""
    parts: list[bytes] = []
    for cut in cuts:
        parts += (cut, TRUE if bits & 1 else FALSE)
        bits >>= 1
    return b"".join(parts)


@dataclass(frozen=True, slots=True)
class StrategyFragments:
    """The fragments of one strategy, in the order in which they are written.

    - `head` ends where the verdict follows. In a flag's first strategy it begins with the flag's names.
    - `picks` are the variants without their last brace, each after PICKED; `variants` closes the chosen one and lists
      them all. Both are empty if there are none.
    - `cuts` are the constraints, and `end` what stands behind them until the segments or the bucket of the rollout
      follow. Without constraints it is also what stands before them.
    - `links` follow the segments. They are empty if there are no segments: then `end` ends with them.
    """

    head: bytes
    picks: tuple[bytes, ...]
    variants: bytes
    cuts: Cuts
    end: bytes
    links: bytes

    def variant(self, pick: int) -> bytes:
        """A variant, without its last brace."""
        return self.picks[pick][len(PICKED) :]


@dataclass(frozen=True, slots=True)
class FlagFragments:
    """The fragments of one flag: its own variants (as those of a strategy), its names (empty if the first strategy has
    them) and its strategies. `impression_data` is for frontend SDKs; `stale`, and whether any of
    its variants has a payload, for OFREP."""

    picks: tuple[bytes, ...]
    variants: bytes
    names: bytes
    strategies: tuple[StrategyFragments, ...]
    impression_data: bool
    stale: bool
    has_payloads: bool
    nbytes: int


@dataclass(frozen=True, slots=True)
class SegmentFragments:
    """The fragments of one segment, as of a strategy. Its own result follows its `end`."""

    cuts: Cuts
    end: bytes
    nbytes: int


PICKED = b',"evaluationStatus":"complete","variant":'
"""Placed before the variant that a strategy picks."""


def find_same_fragments(
    flag: CompiledFlag, earlier: CompiledFlag, fragments: FlagFragments
) -> dict[tuple[int, bool], StrategyFragments]:
    """The fragments of strategies that the flag has taken over from an earlier one, by their ids, and whether first."""
    if flag.project != earlier.project:
        return {}
    pairs = enumerate(zip(earlier.strategies, fragments.strategies, strict=True))
    return {(id(strategy), not index): its for index, (strategy, its) in pairs}


def make_flag_fragments(
    document: Mapping[str, Any],
    flag: CompiledFlag,
    environment: str,
    shared: Shared,
    shared_bytes: int,
    same: Mapping[tuple[int, bool], StrategyFragments] = MappingProxyType({}),
) -> FlagFragments:
    """`shared_bytes` are those that the flag was the first to have when it was compiled. `same`: see above."""
    before = shared.nbytes
    variants = objects_of(document.get("variants"))
    strategies = objects_of(document.get("strategies"))
    page = f"/projects/{flag.project}/features/{flag.name}/strategies/edit?environmentId={environment}&strategyId="
    names = b',"name":%b,"projectId":%b,"strategies":{"data":[' % (as_json(flag.name), as_json(flag.project))
    fragments = tuple(
        same.get((id(strategy), not index))
        or _make_strategy_fragments(document, strategy, page, shared, before=b"," if index else names)
        for index, (document, strategy) in enumerate(zip(strategies, flag.strategies, strict=True))
    )
    sizes = (
        measure_strategy(strategy, its.cuts, its.head, its.end, its.links)
        for strategy, its in zip(flag.strategies, fragments, strict=True)
    )
    return FlagFragments(
        picks=shared(tuple(shared(_write_flag_variant(variant)) for variant in variants)),
        variants=shared(_write_list(variants)),
        names=b"" if strategies else names,
        strategies=fragments,
        impression_data=bool(document.get("impression_data")),
        stale=bool(document.get("stale")),
        has_payloads=any(map(_get_payload, _list_variants(variants, strategies))),
        nbytes=FLAG + sum(sizes) + shared_bytes + shared.nbytes - before,
    )


def _list_variants(
    variants: list[Mapping[str, Any]], strategies: list[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    yield from variants
    for strategy in strategies:
        yield from objects_of(strategy.get("variants"))


def make_segment_fragments(
    document: Mapping[str, Any], segment: CompiledSegment, shared: Shared
) -> SegmentFragments:
    head = b'{"name":%b,"id":%b,"constraints":[' % (as_json(segment.name), as_json(document.get("id")))
    constraints = [_make_stored_constraint(item) for item in objects_of(document.get("constraints"))]
    cuts, end = _cut(head, constraints, b'],"result":', shared)
    return SegmentFragments(cuts, end, measure_segment(cuts, end))


def _make_strategy_fragments(
    document: Mapping[str, Any], strategy: CompiledStrategy, page: str, shared: Shared, *, before: bytes
) -> StrategyFragments:
    variants = objects_of(document.get("variants")) if strategy.variants is not None else []
    constraints = [
        {"inverted": False, "values": [], **_make_stored_constraint(item)}
        for item in objects_of(document.get("constraints"))
    ]
    status = b"" if variants else b',"evaluationStatus":"%b"' % _STATUSES.get(strategy.mode, b"complete")
    links = b'],"links":{"edit":%b}' % as_json(page + strategy.id) + _write_rollout(strategy)
    has_segments = bool(strategy.segments or strategy.missing_segments)
    tail = b'],"segments":[' + (b"" if has_segments else links)
    cuts, end = _cut(status + b'},"constraints":[', constraints, tail, shared)
    return StrategyFragments(
        head=before + _write_strategy_head(document, strategy),
        picks=shared(tuple(shared(PICKED + _write_strategy_variant(variant)) for variant in variants)),
        variants=shared(_write_list(variants)) if variants else b"",
        cuts=cuts,
        end=end,
        links=links if has_segments else b"",
    )


_STATUSES = {Mode.ONLY_SDK: b"incomplete", Mode.DISABLED: b"unevaluated"}


def _write_list(variants: list[Mapping[str, Any]]) -> bytes:
    """The end of a chosen variant, and the list it was chosen from."""
    return b'},"variants":%b' % as_json(variants)


def _write_strategy_head(document: Mapping[str, Any], strategy: CompiledStrategy) -> bytes:
    members: dict[str, Any] = {"name": strategy.name, "id": strategy.id}
    if strategy.title:
        members["title"] = strategy.title
    members["disabled"] = not strategy.counts
    members["parameters"] = parameters_of(document.get("parameters"))
    return as_json(members)[:-1] + b',"result":{"enabled":'


def _write_rollout(strategy: CompiledStrategy) -> bytes:
    """The rollout up to its bucket, or the end of a strategy that has none."""
    if strategy.rollout is None:
        return b"}"
    document = {"threshold": strategy.rollout.threshold, "stickiness": strategy.rollout.stickiness}
    return b',"rollout":%b,"bucket":' % as_json(document)[:-1]


def _make_stored_constraint(document: Mapping[str, Any]) -> dict[str, Any]:
    """A constraint as stored; its single value is always text, as in the reference."""
    stored = {key: item for key, item in document.items() if key != "result"}
    if "value" in stored:
        value = stored.pop("value")
        if value is not None:
            stored["value"] = to_text(value)
    return stored


def _cut(
    opening: bytes, constraints: list[dict[str, Any]], closing: bytes, shared: Shared
) -> tuple[Cuts, bytes]:
    """Constraints between what stands before and after them: the cuts, and what is behind them."""
    cuts = []
    before = opening
    for constraint in constraints:
        result = b',"result":' if constraint else b'"result":'
        cuts.append(shared(before + as_json(constraint)[:-1] + result))
        before = b"},"
    return shared(tuple(cuts)), b"}" + closing if cuts else opening + closing


def _write_strategy_variant(variant: Mapping[str, Any]) -> bytes:
    return as_json({"name": to_text(variant.get("name")), "enabled": True, **_get_payload(variant)})[:-1]


def _write_flag_variant(variant: Mapping[str, Any]) -> bytes:
    document = {"name": to_text(variant.get("name")), **_get_payload(variant), "enabled": True}
    return as_json(document | {"feature_enabled": True, "featureEnabled": True})[:-1]


def _get_payload(variant: Mapping[str, Any]) -> dict[str, Any]:
    return {} if variant.get("payload") is None else {"payload": variant["payload"]}
