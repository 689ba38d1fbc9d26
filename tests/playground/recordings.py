"""The reference's recorded playground answers, and ours for the same definitions and contexts."""

import random
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.response.snapshot import ResponseSnapshot, compile_playground
from playground.response.writer import render_features
from projects.strategies.rules import make_variant_sort_key
from tests.support.engine import NOW
from tests.support.vectors import FOLDER, load
from tests.vectors.condense import RESULTS

OURS_ALONE = ("reason", "unsatisfiedDependencies")


class Recording(NamedTuple):
    """One recorded state: its definitions as the engine reads them, and the recorded cases."""

    name: str
    definitions: dict[str, dict[str, Any]]
    segments: dict[int, dict[str, Any]]
    environment: str
    cases: list[dict[str, Any]]


class Compared(NamedTuple):
    """A flag of one answer: the reference's JSON and ours, in a form in which equal ones are equal."""

    name: str
    context: dict[str, Any]
    recorded: dict[str, Any]
    ours: dict[str, Any]


def recorded_names() -> list[str]:
    """The generated states, recorded in ``tests/vectors/playground``."""
    return sorted(path.stem for path in (FOLDER / "playground").glob("*.jsonl"))


def recorded(name: str) -> Recording:
    return generated_recording(load(f"playground/{name}"))


def generated_recording(rows: list[dict[str, Any]]) -> Recording:
    """A state, its features, segments and cases: a row each. Flags of a case name their shape and results by number."""

    def of(kind: str) -> list[Any]:
        return [row[kind] for row in rows if kind in row]

    shapes, results = of("shape"), of("results")
    cases = [
        {
            "request": {"environment": case["environment"], "context": case["context"]},
            "features": [joined(shapes[shape], iter(results[found])) for shape, found in case["flags"]],
        }
        for case in of("case")
    ]
    state = {"name": rows[0]["state"]} | rows[0]
    return recording(state, of("feature"), of("segment"), cases)


def joined(shape: Any, results: Iterator[Any]) -> Any:
    """What ``tests.vectors.condense`` split into a shape and its results."""
    if isinstance(shape, dict):
        return {
            key: next(results) if key in RESULTS else joined(inner, results)
            for key, inner in sorted(shape.items())
        }
    return [joined(inner, results) for inner in shape] if isinstance(shape, list) else shape


def recording(
    document: Mapping[str, Any], features: list[Any], segments: list[Any], cases: list[Any]
) -> Recording:
    return Recording(
        name=document["name"],
        definitions={feature["name"]: definition(feature, document) for feature in features},
        segments={segment["id"]: segment for segment in segments},
        environment=document["environment"],
        cases=cases,
    )


def definition(feature: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """A recorded feature as it is stored, with what the reference's API adds when it stores it."""
    strategies = [
        {**strategy, "id": f"<strategy:{feature['name']}:{index}>"}
        for index, strategy in enumerate(feature.get("strategies", []))
    ]
    found = {**feature, "project": document["project"], "strategies": strategies}
    if document["made_by_api"]:
        for holder in (found, *strategies):
            if holder.get("variants"):
                holder["variants"] = sorted(
                    holder["variants"], key=lambda variant: make_variant_sort_key(variant["name"])
                )
        for strategy in strategies:
            if strategy["name"] == "flexibleRollout":
                strategy["parameters"] = {"groupId": feature["name"], **strategy["parameters"]}
    return found


def elsewhere(definitions: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The same flags in an environment of which nothing is stored."""
    return {
        name: {**found, "enabled": False, "strategies": [], "variants": []}
        for name, found in definitions.items()
    }


def compile_recording(found: Recording) -> ResponseSnapshot:
    return compile_playground(found.definitions.values(), found.segments, environment=found.environment)


def compared(found: Recording) -> Iterator[Compared]:
    """Every recorded flag of every case, except what chance decides."""
    here = compile_recording(found)
    there = compile_recording(found._replace(definitions=elsewhere(found.definitions)))
    for case in found.cases:
        snapshot = here if case["request"]["environment"] == found.environment else there
        context = case["request"]["context"]
        evaluation = evaluate(snapshot.snapshot, Context(context), now=NOW, random=random.Random(1).random)
        ours = {feature["name"]: feature for feature in orjson.loads(render_features(snapshot, evaluation))}
        for feature in case["features"]:
            name = feature["name"]
            yield Compared(name, context, comparable(feature), comparable(ours[name]))


def comparable(feature: dict[str, Any]) -> dict[str, Any]:
    """Without what is ours alone, and with segments in one order and without their ids."""
    strategies = [
        {
            **{key: value for key, value in strategy.items() if key != "rollout"},
            "segments": sorted(
                (
                    {key: value for key, value in segment.items() if key != "id"}
                    for segment in strategy["segments"]
                ),
                key=lambda segment: segment["name"],
            ),
        }
        for strategy in feature["strategies"]["data"]
    ]
    shown = {key: value for key, value in feature.items() if key not in OURS_ALONE}
    return {**shown, "strategies": {**feature["strategies"], "data": strategies}}
