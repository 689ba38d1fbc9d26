"""The reference's recorded playground answers for the states of the client specification."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.playground.recordings import Recording, recording
from tests.support.paths import SHARED

FOLDER = SHARED / "vectors" / "playground"


def specification_recordings() -> list[Recording]:
    return [specification_recording(path) for path in sorted(FOLDER.glob("spec-*.json.gz"))]


def specification_recording(path: Path) -> Recording:
    document = json.loads(gzip.decompress(path.read_bytes()))
    document |= {
        "name": path.name.removesuffix(".json.gz"),
        "made_by_api": document.get("loadedVia") == "api",
    }
    state = document["exactState"]
    stored = [feature for feature in state["features"] if not feature.get("archived")]
    cases = list(answers(document["cases"], document.get("unstableFlags", [])))
    return recording(document, stored, state["segments"], cases)


def answers(cases: list[dict[str, Any]], unstable: list[str]) -> Iterator[dict[str, Any]]:
    """The recorded requests with their answers, but for the flags that chance decides."""
    for case in cases:
        answer = case.get("exact", case)
        if answer["status"] == 200:
            chance = {*unstable, *answer["unstable"]}
            features = answer["response"]["features"]
            kept = [feature for feature in features if feature["name"] not in chance]
            yield {"request": case["request"], "features": kept}
