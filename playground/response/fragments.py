"""Serializes the parts of a flag's answer that do not depend on the context, when the flag is compiled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from playground.engine.constraints import CONSTRAINT, VALUE, Shared
from playground.engine.flags import CompiledFlag, CompiledSegment
from playground.engine.literals import objects_of, parameters_of, to_text
from playground.engine.strategies import CompiledStrategy, Mode

TRUE, FALSE = b"true", b"false"


Cuts = tuple[bytes, ...]
"""A list of constraints, cut after each of them for its result. Most flags share theirs with others."""


def write_results(cuts: Cuts, bits: int) -> bytes:
    """The constraints with the results from these bits; the first one has the lowest bit."""
    parts: list[bytes] = []
    for cut in cuts:
        parts += (cut, TRUE if bits & 1 else FALSE)
        bits >>= 1
    return b"".join(parts)


@dataclass(frozen=True, slots=True)
class StrategyFragments:
    """The fragments of one strategy, in output order.

    - `head` ends before the verdict. In a flag's first strategy it begins with the flag's names.
    - `picks` are the variants without their last brace, each after PICKED; `variants` closes the chosen one and lists
      them all. Both are empty if there are none.
    - `cuts` are the constraints, and `end` the text after them, up to the segments or the rollout's bucket. Without
      constraints it also includes the text before them.
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
    """The fragments of one flag: its own variants (as for a strategy), its names (empty if the first strategy has
    them) and its strategies. `impression_data` is for frontend SDKs; `stale`, and whether any of its variants has a
    payload, for OFREP.
    """

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
    """The fragments of one segment, as for a strategy. Its own result follows its `end`."""

    cuts: Cuts
    end: bytes
    nbytes: int


PICKED = b',"evaluationStatus":"complete","variant":'
"""Placed before the variant that a strategy picks."""


class Earlier(NamedTuple):
    """An earlier flag with its fragments, for a flag that reuses parts of it.

    Reused parts are the same objects.
    """

    flag: CompiledFlag
    fragments: FlagFragments

    def find_same(
        self, strategy: CompiledStrategy, *, is_first: bool, project: str
    ) -> StrategyFragments | None:
        """The fragments of a reused strategy, if they would be identical."""
        if project != self.flag.project:
            return None
        pairs = enumerate(zip(self.flag.strategies, self.fragments.strategies, strict=True))
        return next((its for index, (own, its) in pairs if own is strategy and is_first == (not index)), None)

    def find_alike(self, strategy: CompiledStrategy) -> StrategyFragments | None:
        """The fragments of a strategy of which everything except perhaps the percentage was reused."""
        wanted = _identify(strategy)
        pairs = zip(self.flag.strategies, self.fragments.strategies, strict=True)
        return next((its for own, its in pairs if _identify(own) == wanted), None)


def _identify(strategy: CompiledStrategy) -> tuple[Mode, int, int]:
    """The inputs of its cuts and variants. Strategies with equal constraints have the same conditions."""
    return strategy.mode, id(strategy.conditions), id(strategy.variants)


def make_flag_fragments(
    document: Mapping[str, Any],
    flag: CompiledFlag,
    environment: str,
    shared: Shared,
    shared_bytes: int,
    earlier: Earlier | None = None,
) -> FlagFragments:
    """`shared_bytes` is the memory of shared values that the flag was the first to have when it was compiled."""
    before = shared.nbytes
    variants = objects_of(document.get("variants"))
    strategies = objects_of(document.get("strategies"))
    page = f"/projects/{flag.project}/features/{flag.name}/strategies/edit?environmentId={environment}&strategyId="
    names = b',"name":%b,"projectId":%b,"strategies":{"data":[' % (as_json(flag.name), as_json(flag.project))
    fragments = tuple(
        (earlier.find_same(strategy, is_first=not index, project=flag.project) if earlier else None)
        or _make_strategy_fragments(
            document,
            strategy,
            page,
            shared,
            before=b"," if index else names,
            alike=earlier.find_alike(strategy) if earlier else None,
        )
        for index, (document, strategy) in enumerate(zip(strategies, flag.strategies, strict=True))
    )
    if earlier and variants and flag.variants is earlier.flag.variants:
        picks, listed = earlier.fragments.picks, earlier.fragments.variants
    else:
        picks = shared(tuple(shared(_write_flag_variant(variant)) for variant in variants))
        listed = shared(_write_list(variants))
    sizes = (
        measure_strategy(strategy, its.cuts, its.head, its.end, its.links)
        for strategy, its in zip(flag.strategies, fragments, strict=True)
    )
    return FlagFragments(
        picks=picks,
        variants=listed,
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
    cuts = _cut(head, constraints, shared)
    end = (b"}" if cuts else head) + b'],"result":'
    return SegmentFragments(cuts, end, measure_segment(cuts, end))


def _make_strategy_fragments(
    document: Mapping[str, Any],
    strategy: CompiledStrategy,
    page: str,
    shared: Shared,
    *,
    before: bytes,
    alike: StrategyFragments | None = None,
) -> StrategyFragments:
    """Reuses those fragments of `alike` that do not depend on the percentage."""
    variants = objects_of(document.get("variants")) if strategy.variants is not None else []
    status = b"" if variants else b',"evaluationStatus":"%b"' % _STATUSES.get(strategy.mode, b"complete")
    opening = status + b'},"constraints":['
    if alike is None:
        picks = shared(tuple(shared(PICKED + _write_strategy_variant(variant)) for variant in variants))
        listed = shared(_write_list(variants)) if variants else b""
        constraints = [
            {"inverted": False, "values": [], **_make_stored_constraint(item)}
            for item in objects_of(document.get("constraints"))
        ]
        cuts = _cut(opening, constraints, shared)
    else:
        picks, listed, cuts = alike.picks, alike.variants, alike.cuts
    links = b'],"links":{"edit":%b}' % as_json(page + strategy.id) + _write_rollout(strategy)
    has_segments = bool(strategy.segments or strategy.missing_segments)
    return StrategyFragments(
        head=before + _write_strategy_head(document, strategy),
        picks=picks,
        variants=listed,
        cuts=cuts,
        end=(b"}" if cuts else opening) + b'],"segments":[' + (b"" if has_segments else links),
        links=links if has_segments else b"",
    )


_STATUSES = {Mode.ONLY_SDK: b"incomplete", Mode.DISABLED: b"unevaluated"}


def _write_list(variants: list[Mapping[str, Any]]) -> bytes:
    """The end of a chosen variant, and the list of variants."""
    return b'},"variants":%b' % as_json(variants)


def _write_strategy_head(document: Mapping[str, Any], strategy: CompiledStrategy) -> bytes:
    members: dict[str, Any] = {"name": strategy.name, "id": strategy.id}
    if strategy.title:
        members["title"] = strategy.title
    members["disabled"] = not strategy.counts
    members["parameters"] = parameters_of(document.get("parameters"))
    return as_json(members)[:-1] + b',"result":{"enabled":'


def _write_rollout(strategy: CompiledStrategy) -> bytes:
    """The rollout up to its bucket, or the end of a strategy without one."""
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


def _cut(opening: bytes, constraints: list[dict[str, Any]], shared: Shared) -> Cuts:
    """Constraints after the opening text. The text after the last one includes its brace."""
    cuts = []
    before = opening
    for constraint in constraints:
        result = b',"result":' if constraint else b'"result":'
        cuts.append(shared(before + as_json(constraint)[:-1] + result))
        before = b"},"
    return shared(tuple(cuts))


def _write_strategy_variant(variant: Mapping[str, Any]) -> bytes:
    return as_json({"name": to_text(variant.get("name")), "enabled": True, **_get_payload(variant)})[:-1]


def _write_flag_variant(variant: Mapping[str, Any]) -> bytes:
    document = {"name": to_text(variant.get("name")), **_get_payload(variant), "enabled": True}
    return as_json(document | {"feature_enabled": True, "featureEnabled": True})[:-1]


def _get_payload(variant: Mapping[str, Any]) -> dict[str, Any]:
    return {} if variant.get("payload") is None else {"payload": variant["payload"]}


DEEPEST = 100


def as_json(value: object) -> bytes:
    """JSON of any stored value; values that JSON or UTF-8 cannot represent become null or "?"."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        return orjson.dumps(_make_presentable(value, DEEPEST))


def as_json_texts(texts: Iterable[str]) -> list[bytes]:
    """Every text as a JSON string. Encodes all of them together: a call for each takes ten times as long."""
    encoded = orjson.dumps(list(texts), option=orjson.OPT_INDENT_2)[4:-2]
    return encoded.split(b",\n  ") if encoded else []  # no JSON string contains a line break


def _make_presentable(value: Any, depth: int) -> Any:
    """A value without numbers beyond 64 bits, lone surrogates, and more than `depth` levels."""
    if not depth:
        return None
    if isinstance(value, Mapping):
        return {to_text(key): _make_presentable(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_make_presentable(item, depth - 1) for item in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return float(to_text(value))
    return to_text(value) if isinstance(value, str) else value


FLAG, STRATEGY, SEGMENT = 700, 800, 900
"""Bytes of the objects of each, and of its places in the layout and the batch."""


def measure_strategy(compiled: CompiledStrategy, cuts: tuple[bytes, ...], head: bytes, *more: bytes) -> int:
    """The bytes that a strategy does not share: its `cuts` are shared, its `head` and `more` are not."""
    size = STRATEGY + len(head) + sum(map(len, more))
    if len(compiled.constraints) > len(cuts):  # its own constraint is compiled from its parameters
        size += CONSTRAINT + VALUE * head.count(b",")
    return size


def measure_segment(cuts: tuple[bytes, ...], end: bytes) -> int:
    """The bytes of a segment."""
    return SEGMENT + len(end) + sum(map(len, cuts))
