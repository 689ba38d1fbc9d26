"""What of the playground's answer can be serialised when a definition is compiled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import orjson

from playground.engine.reading import objects_of, parameters_of, text_of
from playground.engine.snapshot import CompiledFlag, CompiledSegment
from playground.engine.strategies import CompiledStrategy, Mode

Echoes = tuple[tuple[int, bytes], ...]
"""Per constraint its bit and its JSON up to the value of `result`."""


@dataclass(frozen=True, slots=True)
class StrategyTemplate:
    """The pieces of one strategy, in the order they are written.

    `head` to `"result":`, `status` after its verdict, `picks` a variant by index, `variants` the list they
    come from, `constraints`, `tail` to the segments, `links` after them (in `tail` when there are none),
    `threshold` after a rollout's bucket. `chosen` are the picks in the form the flag shows them.
    """

    head: bytes
    status: bytes
    picks: tuple[bytes, ...]
    chosen: tuple[bytes, ...]
    variants: bytes
    constraints: Echoes
    tail: bytes
    links: bytes
    threshold: bytes


@dataclass(frozen=True, slots=True)
class FlagTemplate:
    """The pieces of one flag: its own variants as chosen and as a list, its names, its strategies."""

    chosen: tuple[bytes, ...]
    variants: bytes
    names: bytes
    strategies: tuple[StrategyTemplate, ...]


@dataclass(frozen=True, slots=True)
class SegmentTemplate:
    """A segment up to `"result":`, and its constraints as stored."""

    head: bytes
    constraints: Echoes


def as_json(value: object) -> bytes:
    """JSON of any stored value. Numbers beyond 64 bit and lone surrogates, too."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        return json.dumps(value, separators=(",", ":"), default=str).encode()


def flag_template(document: Mapping[str, Any], flag: CompiledFlag, environment: str) -> FlagTemplate:
    variants = objects_of(document.get("variants"))
    strategies = objects_of(document.get("strategies"))
    page = f"/projects/{flag.project}/features/{flag.name}/strategies/edit?environmentId={environment}&strategyId="
    return FlagTemplate(
        chosen=tuple(_flag_variant(variant) for variant in variants),
        variants=b',"variants":%b' % as_json(variants),
        names=b',"name":%b,"projectId":%b,"strategies":{"result":'
        % (as_json(flag.name), as_json(flag.project)),
        strategies=tuple(
            _strategy_template(document, strategy, page, first=index == 0)
            for index, (document, strategy) in enumerate(zip(strategies, flag.strategies, strict=True))
        ),
    )


def segment_template(document: Mapping[str, Any], segment: CompiledSegment) -> SegmentTemplate:
    head = b'{"name":%b,"id":%b,"result":' % (as_json(segment.name), as_json(document.get("id")))
    constraints = [_stored_constraint(item) for item in objects_of(document.get("constraints"))]
    return SegmentTemplate(head, _echoes(constraints, opening=b',"constraints":['))


def template_size(template: FlagTemplate | SegmentTemplate) -> int:
    """About how many bytes a template holds."""
    return _held(template)


def _held(item: object) -> int:
    if isinstance(item, bytes):
        return 40 + len(item)
    if isinstance(item, tuple):
        return 56 + sum(8 + _held(member) for member in item)
    if isinstance(item, int):
        return 0
    slots = fields(item)  # type: ignore[arg-type]
    return 48 + sum(8 + _held(getattr(item, slot.name)) for slot in slots)


def _strategy_template(
    document: Mapping[str, Any], strategy: CompiledStrategy, page: str, *, first: bool
) -> StrategyTemplate:
    variants = objects_of(document.get("variants")) if strategy.variants is not None else []
    constraints = [_defaults(_stored_constraint(item)) for item in objects_of(document.get("constraints"))]
    opened = b"}]" if constraints else b'},"constraints":[]'
    links = b'],"links":{"edit":%b}' % as_json(page + strategy.id)
    has_segments = bool(strategy.segments or strategy.missing_segments)
    return StrategyTemplate(
        head=_strategy_head(document, strategy, first=first),
        status=_STATUS.get(strategy.mode, b',"evaluationStatus":"complete"'),
        picks=tuple(b',"variant":%b' % as_json(_strategy_variant(variant)) for variant in variants),
        chosen=tuple(as_json(_strategy_variant(variant) | {"feature_enabled": True}) for variant in variants),
        variants=b',"variants":%b' % as_json(variants),
        constraints=_echoes(constraints, opening=b'},"constraints":['),
        tail=opened + b',"segments":[' + (b"" if has_segments else links),
        links=links if has_segments else b"",
        threshold=_threshold(strategy),
    )


_STATUS = {
    Mode.ONLY_SDK: b',"evaluationStatus":"incomplete"',
    Mode.DISABLED: b',"evaluationStatus":"unevaluated"',
}


def _strategy_head(document: Mapping[str, Any], strategy: CompiledStrategy, *, first: bool) -> bytes:
    shown: dict[str, Any] = {"name": strategy.name, "id": strategy.id}
    if strategy.title:
        shown["title"] = strategy.title
    shown["disabled"] = not strategy.counts
    shown["parameters"] = parameters_of(document.get("parameters"))
    return (b',"data":[' if first else b",") + as_json(shown)[:-1] + b',"result":'


def _threshold(strategy: CompiledStrategy) -> bytes:
    if strategy.rollout is None:
        return b""
    rollout = strategy.rollout
    return b',"threshold":%d,"stickiness":%b' % (rollout.threshold, as_json(rollout.stickiness))


def _stored_constraint(document: Mapping[str, Any]) -> dict[str, Any]:
    """A constraint as stored; its single value is always text, as in the reference."""
    stored = {key: item for key, item in document.items() if key != "result"}
    if "value" in stored:
        value = stored.pop("value")
        if value is not None:
            stored["value"] = text_of(value)
    return stored


def _defaults(stored: dict[str, Any]) -> dict[str, Any]:
    return {"inverted": False, "values": [], **stored}


def _echoes(constraints: list[dict[str, Any]], *, opening: bytes) -> Echoes:
    found = []
    for index, constraint in enumerate(constraints):
        body = as_json(constraint)[:-1] + (b',"result":' if constraint else b'"result":')
        found.append((1 << index, (b"}," if index else opening) + body))
    return tuple(found)


def _strategy_variant(variant: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": text_of(variant.get("name")), "enabled": True, **_payload(variant)}


def _flag_variant(variant: Mapping[str, Any]) -> bytes:
    shown = {"name": text_of(variant.get("name")), **_payload(variant), "enabled": True}
    return as_json(shown | {"feature_enabled": True, "featureEnabled": True})


def _payload(variant: Mapping[str, Any]) -> dict[str, Any]:
    return {} if variant.get("payload") is None else {"payload": variant["payload"]}
