"""The engine passes additional test cases in the format of the client specification.

There is one file each for operators, strategies, segments, variants and dependencies. To add a case, add an
entry there; SDKs must agree with it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.engine import compiled, evaluated, is_enabled, variant
from tests.support.paths import ROOT

FILES = sorted((ROOT / "tests" / "vectors" / "engine").glob("*.json"))


def load(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_ours(path: Path) -> None:
    vectors = load(path)
    snapshot = compiled(vectors["state"])

    for test in vectors["tests"]:
        result = is_enabled(evaluated(snapshot, test["context"]), test["toggleName"])
        assert result is test["expectedResult"], test["description"]
    for test in vectors["variantTests"]:
        chosen = variant(evaluated(snapshot, test["context"]), test["toggleName"])
        assert chosen == test["expectedResult"]["name"], test["description"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_sdk_agrees(path: Path) -> None:
    engine = pytest.importorskip("yggdrasil_engine.engine").UnleashEngine()
    vectors = load(path)
    engine.take_state(json.dumps(vectors["state"]))

    for test in vectors["tests"]:
        result = engine._do_is_enabled(test["toggleName"], test["context"])
        assert result is test["expectedResult"], test["description"]
    for test in vectors["variantTests"]:
        result = engine._do_get_variant(test["toggleName"], test["context"])
        assert result.name == test["expectedResult"]["name"], test["description"]
