"""What of the playground's answer can be serialised when a definition is compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from playground.engine.coercion import objects_of, parameters_of, text_of
from playground.engine.snapshot import CompiledFlag, CompiledSegment
from playground.engine.strategies import CompiledStrategy, Mode

TRUE, FALSE = b"true", b"false"


@dataclass(frozen=True, slots=True)
class Echoed:
    """Constraints, cut where their results stand: each of the `cuts` is followed by one, then comes `end`."""

    cuts: tuple[bytes, ...]
    end: bytes

    def with_results(self, bits: int) -> bytes:
        """All of it with the results of these bits, the first constraint's being the lowest."""
        parts: list[bytes] = []
        for cut in self.cuts:
            parts += (cut, TRUE if bits & 1 else FALSE)
            bits >>= 1
        parts.append(self.end)
        return b"".join(parts)


@dataclass(frozen=True, slots=True)
class StrategyTemplate:
    """The pieces of one strategy, in the order they are written.

    `head` ends where the verdict follows (a flag's first strategy has the flag's names before it); `picks`, the
    variants without their last brace, each behind PICKED, and the list of `variants` they are picked from, which
    closes it (both empty where there is nothing to pick); the `body`, which ends where segments or a rollout's bucket
    follow; `links`, what follows the segments (empty where there are none: then the body has it).
    """

    head: bytes
    picks: tuple[bytes, ...]
    variants: bytes
    body: Echoed
    links: bytes

    def variant(self, pick: int) -> bytes:
        """One of the variants, without its last brace."""
        return self.picks[pick][len(PICKED) :]


@dataclass(frozen=True, slots=True)
class FlagTemplate:
    """The pieces of one flag: its own variants as a strategy has them, its names (empty where the first strategy has
    them) and its strategies. `impression_data` is for frontend SDKs."""

    picks: tuple[bytes, ...]
    variants: bytes
    names: bytes
    strategies: tuple[tuple[CompiledStrategy, StrategyTemplate], ...]
    impression_data: bool


PICKED = b',"evaluationStatus":"complete","variant":'
"""Before the variant that a strategy picks."""
DEEPEST = 100


def as_json(value: object) -> bytes:
    """JSON of any stored value; what JSON or UTF-8 cannot hold becomes null or "?"."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        return orjson.dumps(_presentable(value, DEEPEST))


def _presentable(value: Any, depth: int) -> Any:
    """A value without numbers beyond 64 bit, lone surrogates, and more than `depth` levels."""
    if not depth:
        return None
    if isinstance(value, Mapping):
        return {text_of(key): _presentable(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_presentable(item, depth - 1) for item in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return float(text_of(value))
    return text_of(value) if isinstance(value, str) else value


def flag_template(document: Mapping[str, Any], flag: CompiledFlag, environment: str) -> FlagTemplate:
    variants = objects_of(document.get("variants"))
    strategies = objects_of(document.get("strategies"))
    page = f"/projects/{flag.project}/features/{flag.name}/strategies/edit?environmentId={environment}&strategyId="
    names = b',"name":%b,"projectId":%b,"strategies":{"data":[' % (as_json(flag.name), as_json(flag.project))
    return FlagTemplate(
        picks=tuple(_flag_variant(variant) for variant in variants),
        variants=_listed(variants),
        names=b"" if strategies else names,
        strategies=tuple(
            (strategy, _strategy_template(document, strategy, page, before=b"," if index else names))
            for index, (document, strategy) in enumerate(zip(strategies, flag.strategies, strict=True))
        ),
        impression_data=bool(document.get("impression_data")),
    )


def segment_template(document: Mapping[str, Any], segment: CompiledSegment) -> Echoed:
    """A segment up to the end of its constraints; its own result follows."""
    head = b'{"name":%b,"id":%b,"constraints":[' % (as_json(segment.name), as_json(document.get("id")))
    constraints = [_stored_constraint(item) for item in objects_of(document.get("constraints"))]
    return _echoed(head, constraints, b'],"result":')


def template_size(template: FlagTemplate | Echoed) -> int:
    """About how many bytes a template holds, with what was written last."""
    if isinstance(template, Echoed):
        return _echoed_size(template)
    own = len(template.variants) + len(template.names) + _tuple_size(template.picks)
    return FLAG_TEMPLATE + own + sum(_strategy_size(pieces) for _, pieces in template.strategies)


# Of objects without the texts in them, as CPython 3.11 makes them: a header, a slot for each field, the tuples, and
# their places in the layout of an answer.
FLAG_TEMPLATE, STRATEGY_TEMPLATE, ECHOED, TUPLE, TEXT = 200, 250, 48, 56, 40


def _strategy_size(pieces: StrategyTemplate) -> int:
    body = _echoed_size(pieces.body)
    texts = len(pieces.head) + _tuple_size(pieces.picks) + len(pieces.variants) + len(pieces.links)
    return STRATEGY_TEMPLATE + texts + 2 * body  # it is kept as it was written last


def _echoed_size(echoed: Echoed) -> int:
    return ECHOED + _tuple_size(echoed.cuts) + TEXT + len(echoed.end)


def _tuple_size(texts: tuple[bytes, ...]) -> int:
    return TUPLE + (8 + TEXT) * len(texts) + sum(map(len, texts))


def _strategy_template(
    document: Mapping[str, Any], strategy: CompiledStrategy, page: str, *, before: bytes
) -> StrategyTemplate:
    variants = objects_of(document.get("variants")) if strategy.variants is not None else []
    constraints = [
        {"inverted": False, "values": [], **_stored_constraint(item)}
        for item in objects_of(document.get("constraints"))
    ]
    status = b"" if variants else b',"evaluationStatus":"%b"' % _STATUSES.get(strategy.mode, b"complete")
    links = b'],"links":{"edit":%b}' % as_json(page + strategy.id) + _rollout(strategy)
    has_segments = bool(strategy.segments or strategy.missing_segments)
    tail = b'],"segments":[' + (b"" if has_segments else links)
    return StrategyTemplate(
        head=before + _strategy_head(document, strategy),
        picks=tuple(PICKED + _strategy_variant(variant) for variant in variants),
        variants=_listed(variants) if variants else b"",
        body=_echoed(status + b'},"constraints":[', constraints, tail),
        links=links if has_segments else b"",
    )


_STATUSES = {Mode.ONLY_SDK: b"incomplete", Mode.DISABLED: b"unevaluated"}


def _listed(variants: list[Mapping[str, Any]]) -> bytes:
    """The end of a chosen variant, and the list it was chosen from."""
    return b'},"variants":%b' % as_json(variants)


def _strategy_head(document: Mapping[str, Any], strategy: CompiledStrategy) -> bytes:
    shown: dict[str, Any] = {"name": strategy.name, "id": strategy.id}
    if strategy.title:
        shown["title"] = strategy.title
    shown["disabled"] = not strategy.counts
    shown["parameters"] = parameters_of(document.get("parameters"))
    return as_json(shown)[:-1] + b',"result":{"enabled":'


def _rollout(strategy: CompiledStrategy) -> bytes:
    """The rollout up to its bucket, or the end of a strategy that has none."""
    if strategy.rollout is None:
        return b"}"
    shown = {"threshold": strategy.rollout.threshold, "stickiness": strategy.rollout.stickiness}
    return b',"rollout":%b,"bucket":' % as_json(shown)[:-1]


def _stored_constraint(document: Mapping[str, Any]) -> dict[str, Any]:
    """A constraint as stored; its single value is always text, as in the reference."""
    stored = {key: item for key, item in document.items() if key != "result"}
    if "value" in stored:
        value = stored.pop("value")
        if value is not None:
            stored["value"] = text_of(value)
    return stored


def _echoed(opening: bytes, constraints: list[dict[str, Any]], closing: bytes) -> Echoed:
    """Constraints between what stands before and after them."""
    cuts = []
    before = opening
    for constraint in constraints:
        result = b',"result":' if constraint else b'"result":'
        cuts.append(before + as_json(constraint)[:-1] + result)
        before = b"},"
    end = b"}" + closing if cuts else opening + closing
    return Echoed(tuple(cuts), end)


def _strategy_variant(variant: Mapping[str, Any]) -> bytes:
    return as_json({"name": text_of(variant.get("name")), "enabled": True, **_payload(variant)})[:-1]


def _flag_variant(variant: Mapping[str, Any]) -> bytes:
    shown = {"name": text_of(variant.get("name")), **_payload(variant), "enabled": True}
    return as_json(shown | {"feature_enabled": True, "featureEnabled": True})[:-1]


def _payload(variant: Mapping[str, Any]) -> dict[str, Any]:
    return {} if variant.get("payload") is None else {"payload": variant["payload"]}
