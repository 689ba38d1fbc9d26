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

    `head` up to `"result":`, the `verdicts` (with `"variant":` at the end where there is one to follow),
    `picks` (a variant without its last brace, by index) and the list of `variants`, `constraints`, `tail` up to
    the segments, `links` after them (empty where there are none: then `tail` has them), and `threshold` after a
    rollout's bucket.
    """

    head: bytes
    verdicts: Mapping[bool | None, bytes]
    picks: tuple[bytes, ...]
    variants: bytes
    constraints: Echoes
    all_hold: tuple[bytes, ...]
    tail: bytes
    links: bytes
    threshold: bytes


@dataclass(frozen=True, slots=True)
class FlagTemplate:
    """The pieces of one flag: its own variants (as `picks` and `variants` of a strategy), its names and its
    strategies. `impression_data` is for frontend SDKs."""

    picks: tuple[bytes, ...]
    variants: bytes
    names: bytes
    strategies: tuple[StrategyTemplate, ...]
    impression_data: bool


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
        picks=tuple(_flag_variant(variant) for variant in variants),
        variants=_listed(variants),
        names=b',"name":%b,"projectId":%b,"strategies":{"result":'
        % (as_json(flag.name), as_json(flag.project)),
        strategies=tuple(
            _strategy_template(document, strategy, page, first=index == 0)
            for index, (document, strategy) in enumerate(zip(strategies, flag.strategies, strict=True))
        ),
        impression_data=bool(document.get("impression_data")),
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
    if isinstance(item, int | dict):
        return 0
    slots = fields(item)  # type: ignore[arg-type]
    return 48 + sum(8 + _held(getattr(item, slot.name)) for slot in slots)


def _strategy_template(
    document: Mapping[str, Any], strategy: CompiledStrategy, page: str, *, first: bool
) -> StrategyTemplate:
    variants = objects_of(document.get("variants")) if strategy.variants is not None else []
    constraints = [_defaults(_stored_constraint(item)) for item in objects_of(document.get("constraints"))]
    echoes = _echoes(constraints, opening=b'},"constraints":[')
    opened = b"}]" if constraints else b'},"constraints":[]'
    links = b'],"links":{"edit":%b}' % as_json(page + strategy.id)
    has_segments = bool(strategy.segments or strategy.missing_segments)
    return StrategyTemplate(
        head=_strategy_head(document, strategy, first=first),
        verdicts=_VERDICTS[_STATUSES.get(strategy.mode, "complete"), bool(variants)],
        picks=tuple(_strategy_variant(variant) for variant in variants),
        variants=_listed(variants) if variants else b"",
        constraints=echoes,
        all_hold=tuple(piece for _, echo in echoes for piece in (echo, b"true")),
        tail=opened + b',"segments":[' + (b"" if has_segments else links),
        links=links if has_segments else b"",
        threshold=_threshold(strategy),
    )


_STATUSES = {Mode.ONLY_SDK: "incomplete", Mode.DISABLED: "unevaluated"}
_VERDICTS = {
    (status, with_variant): {
        verdict: as_json({"enabled": "unknown" if verdict is None else verdict, "evaluationStatus": status})[
            :-1
        ]
        + (b',"variant":' if with_variant else b"")
        for verdict in (True, False, None)
    }
    for status in ("complete", "incomplete", "unevaluated")
    for with_variant in (True, False)
}


def _listed(variants: list[Mapping[str, Any]]) -> bytes:
    """The end of a chosen variant, and the list it was chosen from."""
    return b'},"variants":%b' % as_json(variants)


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


def _strategy_variant(variant: Mapping[str, Any]) -> bytes:
    return as_json({"name": text_of(variant.get("name")), "enabled": True, **_payload(variant)})[:-1]


def _flag_variant(variant: Mapping[str, Any]) -> bytes:
    shown = {"name": text_of(variant.get("name")), **_payload(variant), "enabled": True}
    return as_json(shown | {"feature_enabled": True, "featureEnabled": True})[:-1]


def _payload(variant: Mapping[str, Any]) -> dict[str, Any]:
    return {} if variant.get("payload") is None else {"payload": variant["payload"]}
