"""The files of the client specification, read as cases of the engine."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.support.cases import Case, CaseFile
from tests.support.paths import SHARED

FOLDER = SHARED / "vectors" / "client-specification" / "specifications"


def specification() -> list[CaseFile]:
    return [read(path) for path in sorted(FOLDER.glob("[0-9]*.json"))]


def read(path: Path) -> CaseFile:
    found = json.loads(path.read_text())
    state = found["state"]
    return CaseFile(
        name=path.stem,
        state=state_of_events(state["events"]) if "events" in state else state,
        cases=[*_cases(found.get("tests", [])), *_cases(found.get("variantTests", []))],
        stored={},
    )


def _cases(tests: Iterable[dict[str, Any]]) -> Iterator[Case]:
    for test in tests:
        expected = test["expectedResult"]
        switch, variant = (None, expected["name"]) if isinstance(expected, dict) else (expected, None)
        yield Case(test["toggleName"], test["context"], switch, variant)


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
