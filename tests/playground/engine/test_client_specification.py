"""The engine passes all tests of the SDKs' client specification."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from playground.engine.snapshot import Snapshot
from tests.support.engine import compiled, evaluated, is_enabled, variant
from tests.support.paths import SHARED

FOLDER = SHARED / "vectors" / "client-specification" / "specifications"
NUMBER_OF_TESTS = 279

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the client specification is not beside the checkout"
)


def state_of_events(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The flags and segments that a client holds after these events."""
    flags: dict[str, Any] = {}
    segments: dict[int, Any] = {}
    for event in events:
        kind = event["type"]
        if kind == "hydration":
            flags = {flag["name"]: flag for flag in event["features"]}
            segments = {segment["id"]: segment for segment in event.get("segments", [])}
        elif kind == "feature-updated":
            flags[event["feature"]["name"]] = event["feature"]
        elif kind == "feature-removed":
            flags.pop(event["featureName"], None)
        elif kind == "segment-updated":
            segments[event["segment"]["id"]] = event["segment"]
        elif kind == "segment-removed":
            segments.pop(event["segmentId"], None)
    return {"features": list(flags.values()), "segments": list(segments.values())}


def cases(kind: str) -> Iterator[Any]:
    for path in sorted(FOLDER.glob("[0-9]*.json")):
        specification = json.loads(path.read_text())
        state = specification["state"]
        if "events" in state:
            state = state_of_events(state["events"])
        snapshot = compiled(state)
        for test in specification.get(kind, []):
            yield pytest.param(snapshot, test, id=f"{path.stem}: {test['description']}")


@pytest.mark.parametrize(("snapshot", "test"), list(cases("tests")))
def test_is_enabled(snapshot: Snapshot, test: dict[str, Any]) -> None:
    evaluation = evaluated(snapshot, test["context"])

    assert is_enabled(evaluation, test["toggleName"]) is test["expectedResult"]


@pytest.mark.parametrize(("snapshot", "test"), list(cases("variantTests")))
def test_variant(snapshot: Snapshot, test: dict[str, Any]) -> None:
    evaluation = evaluated(snapshot, test["context"])

    assert variant(evaluation, test["toggleName"]) == test["expectedResult"]["name"]


def test_all_of_the_specification_was_run() -> None:
    assert len(list(cases("tests"))) + len(list(cases("variantTests"))) == NUMBER_OF_TESTS
