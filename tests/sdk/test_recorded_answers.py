"""SDK requests get the reference's recorded responses, apart from intended differences."""

import json
from typing import Any

import pytest

from tests.support.cast import client, make_token
from tests.support.recorded_sdk import FEATURES, make_recorded_flags, recorded_cases

pytestmark = [pytest.mark.django_db, pytest.mark.exhaustive]
DECIDED_OTHERWISE = {
    "register appName 256": "the reference takes it and loses it with all others; here it is refused at once",
    "delta": "the recorded version of the reference did not have it",
    "streaming": "the recorded version of the reference did not have it",
}


CASES = {name: case for name, case in recorded_cases("/api/client/").items() if name not in DECIDED_OTHERWISE}


@pytest.fixture
def tokens(db: None) -> dict[str, str]:
    """Our tokens by the names of the recorded ones."""
    return {
        "TB (backend)": make_token("backend", projects=["default"], environment="development"),
        "TF (frontend)": make_token("frontend", projects=["default"], environment="development"),
        "TX (expired backend)": make_token(
            "backend", projects=["default"], environment="development", expires_at="2020-01-01T00:00:00Z"
        ),
        "admin token": make_token("admin"),
    }


@pytest.fixture
def flags(db: None) -> dict[int, int]:
    """Our segment ids by the recorded ones."""
    return make_recorded_flags()


@pytest.mark.parametrize("name", CASES)
def test_answers_equal_the_recorded_ones(name: str, flags: dict[int, int], tokens: dict[str, str]) -> None:
    case = CASES[name]
    etag = send(CASES[FEATURES], tokens)["ETag"] if case["status"] == 304 else ""
    answer = send(case, tokens, etag)
    assert answer.status_code == case["status"]
    if "answer" in case:
        assert comparable(answer.json()) == comparable(renumbered(case["answer"], flags))
        assert list(answer.json()) == list(case["answer"])


def send(case: dict[str, Any], tokens: dict[str, str], etag: str = "") -> Any:
    headers = {name: value.replace("{etag}", etag) for name, value in case["headers"].items()}
    caller = client(tokens.get(case["token"], case["token"]))
    if case["method"] == "POST":
        return caller.post(case["path"], case.get("body"), headers=headers)
    return getattr(caller, case["method"].lower())(case["path"], headers=headers)


def comparable(body: dict[str, Any]) -> dict[str, Any]:
    """Without what is ours to choose: the order of flags, revision, hash."""
    if "features" not in body:
        return body
    ordered = sorted(body["features"], key=lambda feature: feature["name"])
    return {key: value for key, value in body.items() if key != "meta"} | {"features": ordered}


def renumbered(body: dict[str, Any], segments: dict[int, int]) -> dict[str, Any]:
    text = json.loads(json.dumps(body))
    for segment in text.get("segments", ()):
        segment["id"] = segments[segment["id"]]
    for feature in text.get("features", ()):
        for strategy in feature["strategies"]:
            if "segments" in strategy:
                strategy["segments"] = [segments[segment] for segment in strategy["segments"]]
    return text
