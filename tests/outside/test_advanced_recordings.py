"""The advanced playground answers as recorded: order of members, every combination in every environment, warnings."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.outside.recordings import FOLDER
from tests.playground.partings import partings
from tests.playground.recordings import Recording, comparable, recording
from tests.playground.stored_recordings import can_be_stored, no_luck, store, with_ids
from tests.support.cast import make_project

pytestmark = pytest.mark.django_db
PATHS = sorted(path for path in FOLDER.glob("*.json.gz") if not path.name.startswith("spec-"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_advanced_answers_are_as_recorded(api: Any, path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("playground.queries.random.random", no_luck)
    document = json.loads(gzip.decompress(path.read_bytes()))
    found = stored_state(document | {"name": path.name, "made_by_api": document["loadedVia"] == "api"})
    make_project(document["project"])
    ids = store(found, document["project"])
    for case in document["advancedCases"]:
        response = api["viewer"].post("/api/admin/playground/advanced", case["request"])
        ours, theirs = json.loads(with_ids(response.content, ids)), case["response"]
        assert list(ours) == list(theirs)
        assert ours.get("warnings") == theirs.get("warnings")
        flags = {feature["name"]: feature for feature in ours["features"]}
        for feature in theirs["features"]:
            if feature["name"] in found.definitions and feature["name"] not in case["unstable"]:
                check_flag(flags[feature["name"]], feature, found)


def stored_state(document: dict[str, Any]) -> Recording:
    state = document["exactState"]
    active = [feature for feature in state["features"] if not feature.get("archived")]
    found = recording(document, active, state["segments"], [])
    definitions = {name: flag for name, flag in found.definitions.items() if can_be_stored(flag, found)}
    return found._replace(definitions=definitions)


def check_flag(ours: Any, recorded: Any, found: Recording) -> None:
    assert list(ours) == list(recorded)
    assert list(ours["environments"]) == list(recorded["environments"])
    for environment, evaluations in recorded["environments"].items():
        for mine, evaluation in zip(ours["environments"][environment], evaluations, strict=True):
            if not partings(recorded["name"], evaluation["context"], found):
                assert comparable(mine) == comparable(evaluation)
