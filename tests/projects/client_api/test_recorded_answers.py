"""The reference's own answers to SDKs, replayed: documents and statuses, but for what DESIGN.md decides otherwise."""

import gzip
import json
from typing import Any

import pytest
from django.utils import timezone

from projects.models import Dependency, Flag, FlagEnvironment, Segment, Strategy, StrategySegment
from tests.support.cast import client, make_token
from tests.support.paths import SHARED

RECORDED = SHARED / "vectors" / "sdk.json.gz"
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(not RECORDED.exists(), reason="recordings are not beside this checkout"),
]
DECIDED_OTHERWISE = {
    "register appName 256": "the reference takes it and loses it with all others; here it is refused at once",
}


def recorded() -> dict[str, Any]:
    return json.loads(gzip.decompress(RECORDED.read_bytes())) if RECORDED.exists() else {"cases": []}


CASES = {
    case["name"]: case
    for case in recorded()["cases"]
    if case["request"]["path"].startswith("/api/client/") and case["name"] not in DECIDED_OTHERWISE
}


@pytest.fixture
def keys() -> dict[str, str]:
    """Our keys in the place of the recording's, by those."""
    theirs = recorded()["tokens"]
    ours = {
        "TB (backend)": make_token("backend", projects=["default"], environment="development"),
        "TF (frontend)": make_token("frontend", projects=["default"], environment="development"),
        "TX (expired backend)": make_token(
            "backend", projects=["default"], environment="development", expires_at="2020-01-01T00:00:00Z"
        ),
        "admin token": make_token("admin"),
    }
    return {theirs[name]: secret for name, secret in ours.items()}


@pytest.fixture
def flags(db: None) -> dict[int, int]:
    """Our segment ids by the recording's."""
    return make_recorded_flags()


def make_recorded_flags() -> dict[int, int]:
    """The flags of the recording, made from its own document. Answers our segment ids by theirs."""
    document = CASES["features, spec 5.2.0"]["response"]["body"]
    segments = {
        s["id"]: Segment.objects.create(name=s["name"], constraints=s["constraints"])
        for s in document["segments"]
    }
    for feature in document["features"]:
        make_recorded(feature, segments)
    for feature in document["features"]:
        for parent in feature.get("dependencies", ()):
            Dependency.objects.create(
                flag=Flag.objects.get(name=feature["name"]), parent=Flag.objects.get(name=parent["feature"])
            )
    return {theirs: ours.pk for theirs, ours in segments.items()}


def make_recorded(feature: dict[str, Any], segments: dict[int, Segment]) -> None:
    flag = Flag.objects.create(
        name=feature["name"],
        project_id="default",
        type=feature["type"],
        impression_data=feature["impressionData"],
        created_at=timezone.now(),
    )
    FlagEnvironment.objects.create(flag=flag, environment_id="development", enabled=feature["enabled"])
    for order, strategy in enumerate(feature["strategies"]):
        made = Strategy.objects.create(
            flag=flag,
            environment_id="development",
            sort_order=order,
            **{key: strategy[key] for key in ("name", "constraints", "parameters", "variants")},
        )
        for segment in strategy.get("segments", ()):
            StrategySegment.objects.create(strategy=made, segment=segments[segment])


@pytest.mark.parametrize("name", CASES)
def test_recorded(name: str, flags: dict[int, int], keys: dict[str, str]) -> None:
    request, expected = CASES[name]["request"], CASES[name]["response"]
    headers = dict(request["headers"])
    if expected["status"] == 304:
        headers["If-None-Match"] = our_etag(headers["If-None-Match"], keys)
    answer = send(request, headers, keys)
    assert answer.status_code == expected["status"]
    if expected["status"] == 200 and "body" in expected:
        assert comparable(answer.json()) == comparable(renumbered(expected["body"], flags))
        assert list(answer.json()) == list(expected["body"])


def send(request: dict[str, Any], headers: dict[str, str], keys: dict[str, str]) -> Any:
    secret = headers.pop("Authorization", None)
    headers.pop("Content-Type", None)
    caller = client(keys.get(secret, secret) if secret else None)
    if request["method"] == "POST":
        return caller.post(request["path"], request.get("body"), headers=headers)
    return getattr(caller, request["method"].lower())(request["path"], headers=headers)


def our_etag(theirs: str, keys: dict[str, str]) -> str:
    request = CASES["features, spec 5.2.0"]["request"]
    etag = send(request, dict(request["headers"]), keys)["ETag"]
    return theirs.replace('"1fc12c72:81:v1"', etag)


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
