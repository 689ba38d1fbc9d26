"""Builds the demo's flags as parts of an import body."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from flagadmin.core.document import Document
from playground.engine.operators import OPERATORS


def when(context_name: str, operator: str, *values: str, **extra: Any) -> Document:
    """A constraint. Some operators read ``value``, others ``values``; this sets the right one."""
    several = OPERATORS[operator].takes_list
    compared = {"values": list(values)} if several else {"value": values[0], "values": []}
    return {"contextName": context_name, "operator": operator, **compared, **extra}


def strategy(
    name: str,
    parameters: Document | None = None,
    *,
    where: Iterable[Document] = (),
    segments: Iterable[str] = (),
    **extra: Any,
) -> Document:
    return {
        "name": name,
        "parameters": parameters or {},
        "constraints": list(where),
        "segments": list(segments),
        **extra,
    }


def rollout(percent: int, *, by: str = "userId", **extra: Any) -> Document:
    return strategy("flexibleRollout", {"rollout": str(percent), "stickiness": by}, **extra)


def everyone(**extra: Any) -> Document:
    return strategy("default", **extra)


def variant(
    name: str, weight: int, *, kind: str = "variable", payload: tuple[str, str] | None = None
) -> Document:
    document: Document = {"name": name, "weight": weight, "weightType": kind, "stickiness": "default"}
    return document | ({"payload": {"type": payload[0], "value": payload[1]}} if payload else {})


@dataclass(frozen=True, slots=True)
class DemoEnvironment:
    """A flag's state in one environment."""

    enabled: bool
    strategies: list[Document]
    variants: list[Document] = field(default_factory=list)


def on(*strategies: Document, variants: Iterable[Document] = ()) -> DemoEnvironment:
    return DemoEnvironment(True, list(strategies) or [everyone()], list(variants))


def off(*strategies: Document) -> DemoEnvironment:
    return DemoEnvironment(False, list(strategies))


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoFlag:
    name: str
    description: str
    type: str = "release"
    production: DemoEnvironment
    development: DemoEnvironment = field(default_factory=on)
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    parents: tuple[Document, ...] = ()
    archived: bool = False
    stale: bool = False
    impression_data: bool = False


def import_body(
    project: str, environment: str, flags: Iterable[DemoFlag], segment_ids: dict[str, int]
) -> Document:
    """The import body that sets these flags in one environment of the project."""
    flags = list(flags)
    places = {flag.name: getattr(flag, environment) for flag in flags}
    return {
        "project": project,
        "environment": environment,
        "data": {
            "features": [_make_feature(flag) for flag in flags],
            "featureStrategies": [
                _place_strategy(strategy, flag.name, order, segment_ids)
                for flag in flags
                for order, strategy in enumerate(places[flag.name].strategies)
            ],
            "featureEnvironments": [
                {
                    "name": flag.name,
                    "featureName": flag.name,
                    "environment": environment,
                    "enabled": places[flag.name].enabled,
                    "variants": places[flag.name].variants,
                }
                for flag in flags
                if not flag.archived
            ],
            "featureTags": [
                {"featureName": flag.name, "tagType": "simple", "tagValue": tag}
                for flag in flags
                for tag in flag.tags
            ],
            "links": [
                {"feature": flag.name, "links": [{"url": url} for url in flag.links]}
                for flag in flags
                if flag.links
            ],
            "segments": [{"id": number, "name": name} for name, number in segment_ids.items()],
            "tagTypes": [{"name": "simple", "description": "Free-form tags"}],
            "dependencies": [
                {"feature": flag.name, "dependencies": list(flag.parents)} for flag in flags if flag.parents
            ],
        },
    }


def _make_feature(flag: DemoFlag) -> Document:
    return {
        "name": flag.name,
        "type": flag.type,
        "description": flag.description,
        "stale": flag.stale,
        "impressionData": flag.impression_data,
        "archived": flag.archived,
    }


def _place_strategy(strategy: Document, flag: str, order: int, segment_ids: dict[str, int]) -> Document:
    segments = [segment_ids[name] for name in strategy["segments"]]
    parameters = {"groupId": flag} | strategy["parameters"] if strategy["name"] == "flexibleRollout" else None
    return strategy | {
        "featureName": flag,
        "sortOrder": order,
        "segments": segments,
        "parameters": parameters or strategy["parameters"],
    }
