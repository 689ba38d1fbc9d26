"""SDK answers of an installation, in one form for both sides of a move."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

import orjson
from django.db import DEFAULT_DB_ALIAS
from pydantic import Field

from groups.models import ApiToken
from importer.moving.reading.shapes import Constraint, Shape, Text, read_shape
from playground.engine.operators import OPERATORS
from projects.definitions import Definitions
from sdk.features.cache import FeaturesQuery, get_answer
from sdk.spec_header import HEADER

PATH = "/api/client/features"
SPEC = {HEADER: "5.2.0"}
Flags = dict[str, dict[str, Any]]


class Client(Shape):
    """An answer for SDKs. Its flags are checked as they are read."""

    features: list[dict[str, Any]]
    segments: list[dict[str, Any]] = []


class _Parent(Shape):
    feature: str
    enabled: bool = True
    variants: list[str] = []


class _Variant(Shape):
    name: str
    weight: int | float
    stickiness: str = "default"
    payload: dict[str, Any] | None = None
    overrides: list[dict[str, Any]] = []


class _Strategy(Shape):
    name: str
    parameters: dict[str, Text] = {}
    constraints: list[Constraint] = []
    segments: list[int] = []
    variants: list[_Variant] = []


class _ClientFlag(Shape):
    """The parts of a flag that SDKs evaluate."""

    name: str
    project: str
    enabled: bool
    impression_data: bool = Field(False, alias="impressionData")
    strategies: list[_Strategy] = []
    variants: list[_Variant] = []
    dependencies: list[_Parent] = []


class _Segment(Shape):
    id: int
    name: str
    constraints: list[Constraint]


def read_flags(address: str, answer: Client) -> Flags:
    """The flags by name, written in one way, with their segments in place of ids, which differ between servers."""
    segments = {each.id: each for each in read_shape(address, PATH, answer.segments, list[_Segment])}
    written = {
        key: {"name": each.name, "constraints": _make_constraints(each.constraints)}
        for key, each in segments.items()
    }
    flags: Flags = {}
    for flag in read_shape(address, PATH, answer.features, list[_ClientFlag]):
        document = flag.model_dump(exclude={"strategies", "dependencies"})
        document["strategies"] = [
            {
                **strategy.model_dump(exclude={"constraints", "segments"}),
                "constraints": _make_constraints(strategy.constraints),
                "segments": [
                    written.get(key, {"name": "", "constraints": []})
                    for key in sort_by_name(strategy, written)
                ],
            }
            for strategy in flag.strategies
        ]
        # The reference repeats a parent for each environment that it is in.
        parents = {orjson.dumps(parent.model_dump()): parent.model_dump() for parent in flag.dependencies}
        document["dependencies"] = [parents[key] for key in sorted(parents)]
        flags[flag.name] = document
    return flags


def read_flags_here(token: ApiToken) -> Flags:
    """Reads the flags that the token gets here."""
    body = get_answer(token, FeaturesQuery(knows_segments=True), using=DEFAULT_DB_ALIAS).body
    return read_flags("", Client.model_validate_json(body))


def sort_by_name(strategy: _Strategy, written: Mapping[int, Mapping[str, Any]]) -> list[int]:
    """All of a strategy's segments must hold, in whichever order."""
    return sorted(strategy.segments, key=lambda key: str(written.get(key, {}).get("name", "")))


def _make_constraints(constraints: Iterable[Constraint]) -> list[dict[str, Any]]:
    """Leaves out what the operator does not read."""
    documents = []
    for constraint in constraints:
        document = constraint.model_dump()
        unread = "value" if _takes_list(constraint.operator) else "values"
        document[unread] = None if unread == "value" else []
        documents.append(document)
    return documents


def _takes_list(operator: str) -> bool:
    known = OPERATORS.get(operator)
    return known is None or known.takes == "values"


def make_definitions(flags: Flags) -> Definitions:
    """As the engine takes them. Segments get ids by what they are, the same in both installations."""
    segments: dict[bytes, tuple[int, Any]] = {}
    listed: list[Any] = []
    for name in sorted(flags):
        flag = flags[name]
        strategies = []
        for place, strategy in enumerate(flag["strategies"]):
            ids = []
            for segment in strategy["segments"]:
                key = orjson.dumps(segment)
                number = int.from_bytes(sha256(key).digest()[:6])
                segments[key] = number, segment | {"id": number}
                ids.append(number)
            strategies.append(
                strategy | {"segments": ids, "sortOrder": place, "title": None, "disabled": False}
            )
        listed.append(flag | {"strategies": strategies, "stale": False})
    return Definitions(listed, dict(segments.values()))
