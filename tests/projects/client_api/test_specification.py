"""The client specification over HTTP, evaluated by the SDKs' engine and by the playground.

Its states are created through the API and read as an SDK reads them. Every state that can be stored must give
the expected results in both.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from projects.models import Flag, StrategyType
from tests.playground.engine.test_client_specification import FOLDER, NUMBER_OF_TESTS, state_of_events
from tests.support.cast import client, make_project, make_token

ENGINE = pytest.importorskip("yggdrasil_engine.engine")
PROJECT, ENVIRONMENT = "specification", "development"
FEATURES = f"/api/admin/projects/{PROJECT}/features"
NO_VALUES = "IN and NOT_IN need a value"
NOT_STORED = {
    "09 Always enabled for value not in empty list": NO_VALUES,
    "11 Feature.constraints.no_values_NOT_IN should be enabled in default environment": NO_VALUES,
    "11 Feature.constraints.no_values_NOT_IN should be enabled in empty environment": NO_VALUES,
    "18 Feature.UTF-8.Hellø_Wørld feature toggle should be enabled": "names are letters, digits, - . _ ~",
    "18 Feature.UTF-8.😊_φriend_你好_🌍 feature toggle should be enabled": "names are letters, digits, - . _ ~",
    "21 Inverted constraint should enable when regex does not match": "REGEX cannot be inverted",
    "22 Valid CIDR should match even when invalid entries exist": "127.invalid is no network",
    "22 Valid IPv6 CIDR should match even when invalid entries exist": "bad::cidr is no network",
}
"""Tests of flags that neither we nor the reference store, and why."""
CUSTOM = "12 Feature.flexible.rollout.custom.stickiness_100 and customField"
REWEIGHTED = {
    "08 Feature.Variants.C should return variant1",
    "08 Feature.Variants.C should return variant2",
    "08 Feature.Variants.C should return variant3",
    "08 Feature.Variants.D should return variant1",
    "08 Feature.Variants.D should return variant2",
    "08 Feature.Variants.override.D should return variant2 for user 388",
    f"{CUSTOM}=503 yields red",
    f"{CUSTOM}=438 yields green",
    f"{CUSTOM}=44 yields yellow",
    "15 F9.globalSegmentOn and customField=616 yields green",
    "16 Feature.strategy.variants.stickiness should inherit stickiness from the strategy - second variant",
}
"""Tests of variants whose weights do not add up to 1000; we and the reference make them."""

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the client specification is not beside the checkout"),
    pytest.mark.exhaustive,
]


def specification(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text())
    if "events" in found["state"]:
        found["state"] = state_of_events(found["state"]["events"])
    return found


class Installation:
    """A project whose flags are made from a specification's state; ``missing`` are those that were refused."""

    def __init__(self, state: dict[str, Any]) -> None:
        make_project(PROJECT)
        self.admin = client(make_token("admin"))
        self.sdk = client(make_token("backend", projects=[PROJECT], environment=ENVIRONMENT))
        self.missing: dict[str, str] = {}
        self.segments = {segment["id"]: self._segment(segment) for segment in state.get("segments") or []}
        for feature in state["features"]:
            self._flag(feature)
        parents = {f["name"]: [p["feature"] for p in f.get("dependencies") or []] for f in state["features"]}
        # Of a chain, its end is refused.
        for feature in sorted(state["features"], key=lambda f: any(map(parents.get, parents[f["name"]]))):
            if feature["name"] not in self.missing:
                self._parents(feature)

    def _send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        answer = getattr(self.admin, method)(path, body, format="json")
        return answer.status_code, answer.json() if answer.content else None

    def _segment(self, segment: dict[str, Any]) -> int | None:
        body = {"name": f"segment {segment['id']}", "constraints": segment["constraints"]}
        status, answer = self._send("post", "/api/admin/segments", body)
        return answer["id"] if status == 201 else None

    def _flag(self, feature: dict[str, Any]) -> None:
        """All or nothing: of a flag that is refused in part nothing is left."""
        name = feature["name"]
        steps = [("post", FEATURES, {"name": name, "type": "release"})]
        place = f"{FEATURES}/{name}/environments/{ENVIRONMENT}"
        steps += [("post", f"{place}/strategies", self._strategy(s)) for s in feature.get("strategies") or []]
        if feature.get("variants"):
            steps.append(("put", f"{place}/variants", [self._variant(v) for v in feature["variants"]]))
        if feature["enabled"]:
            steps.append(("post", f"{place}/on", None))
        for method, path, body in steps:
            status, answer = self._send(method, path, body)
            if status >= 400:
                return self._leave_out(name, answer)
        return None

    def _leave_out(self, name: str, answer: Any) -> None:
        self.missing[name] = answer["message"]
        Flag.objects.filter(name=name).update(archived_at=timezone.now())

    def _strategy(self, strategy: dict[str, Any]) -> dict[str, Any]:
        kept = ("name", "parameters", "constraints", "disabled", "title")
        name = strategy["name"]
        StrategyType.objects.get_or_create(name=name, defaults={"title": name})
        body = {key: strategy[key] for key in kept if strategy.get(key) is not None}
        body["variants"] = [self._variant(v) for v in strategy.get("variants") or []]
        body["segments"] = [self.segments.get(segment) or 0 for segment in strategy.get("segments") or []]
        return body

    def _variant(self, variant: dict[str, Any]) -> dict[str, Any]:
        return {"weightType": "variable", "stickiness": "default", **variant}

    def _parents(self, feature: dict[str, Any]) -> None:
        for parent in feature.get("dependencies") or []:
            path = f"{FEATURES}/{feature['name']}/dependencies"
            status, answer = self._send("post", path, parent)
            if status >= 400:
                self._leave_out(feature["name"], answer)

    def of_sdk(self, test: dict[str, Any], engine: Any) -> tuple[bool, str]:
        name, context = test["toggleName"], test["context"]
        variant = engine._do_get_variant(name, context)
        return bool(engine._do_is_enabled(name, context)), variant.name if variant else "disabled"

    def of_playground(self, test: dict[str, Any]) -> tuple[bool, str]:
        asked = {"environment": ENVIRONMENT, "projects": [PROJECT], "context": test["context"]}
        status, answer = self._send("post", "/api/admin/playground", asked)
        assert status == 200, answer
        for feature in answer["features"]:
            if feature["name"] == test["toggleName"]:
                return feature["isEnabled"], feature["variant"]["name"]
        return False, "disabled"


def cases(found: dict[str, Any]) -> list[tuple[int, dict[str, Any], Any]]:
    """(place in a result, test, what is expected there)"""
    enabled = [(0, test, test["expectedResult"]) for test in found.get("tests", [])]
    return enabled + [(1, test, test["expectedResult"]["name"]) for test in found.get("variantTests", [])]


def outcomes(path: Path) -> dict[str, str]:
    """By test: holds, not stored, other weights (SDK and playground agree there), or what is wrong."""
    found = specification(path)
    installation = Installation(found["state"])
    engine = ENGINE.UnleashEngine()
    engine.take_state(installation.sdk.get("/api/client/features").content.decode())
    told = {}
    for part, test, wanted in cases(found):
        sdk, playground = installation.of_sdk(test, engine)[part], installation.of_playground(test)[part]
        if (sdk, playground) == (wanted, wanted):
            told[name_of(path, test)] = "holds"
        elif test["toggleName"] in installation.missing:
            told[name_of(path, test)] = "not stored"
        else:
            same = sdk == playground and part == 1
            told[name_of(path, test)] = (
                "other weights" if same else f"{wanted}: SDK {sdk}, playground {playground}"
            )
    return told


def name_of(path: Path, test: dict[str, Any]) -> str:
    return f"{path.stem[:2]} {test['description']}"


def expected(name: str) -> str:
    if name in NOT_STORED:
        return "not stored"
    return "other weights" if name in REWEIGHTED else "holds"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("[0-9]*.json")), ids=lambda path: path.stem)
def test_all_that_can_be_stored_holds(path: Path) -> None:
    found = outcomes(path)
    assert found == {name: expected(name) for name in found}


def test_every_test_is_told_of() -> None:
    told = Counter(
        expected(name_of(path, test))
        for path in sorted(FOLDER.glob("[0-9]*.json"))
        for _, test, _ in cases(specification(path))
    )
    assert told == {"holds": 260, "not stored": len(NOT_STORED), "other weights": len(REWEIGHTED)}
    assert told.total() == NUMBER_OF_TESTS
