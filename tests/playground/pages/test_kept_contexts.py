"""Contexts too long for a URL are stored under their digest; the oldest are deleted."""

import json
from urllib.parse import parse_qsl, urlsplit

import pytest

from playground.models import KeptContext
from playground.pages.query import KEPT_FOR_EACH_USER
from tests.support.scenery import scenery

__all__ = ["scenery"]


@pytest.fixture
def viewer(scenery, browse):
    return browse("viewer")


def long_context(user="42"):
    return json.dumps({"userId": user, "properties": {"plan": "pro", "note": "x" * 3_000}})


def test_a_short_question_is_its_url(viewer):
    response = viewer.post(
        "/playground/", {"environment": "production", "context.userId": "7", "context.plan": ""}
    )

    assert response["Location"] == "/playground/?environment=production&context.userId=7"
    assert not KeptContext.objects.exists()


def test_a_long_one_is_stored_once(viewer):
    first = viewer.post("/playground/", {"json": long_context()})["Location"]
    second = viewer.post("/playground/", {"json": long_context()})["Location"]

    assert first == second
    assert len(first) < 200
    assert KeptContext.objects.count() == 1
    assert viewer.get(first).status_code == 200
    assert "plan is pro" in viewer.get(first.replace("/playground/", "/playground/flag/dark-theme/")).text


def test_others_can_open_its_link(viewer, browse):
    link = viewer.post("/playground/", {"json": long_context()})["Location"]

    assert "userId 42 is in bucket 53" in browse("editor").get(link).text


def test_each_side_of_compare_has_its_own(viewer):
    sides = {"a.json": long_context("1"), "b.json": long_context("42")}
    link = viewer.post("/playground/compare/", sides)["Location"]

    kept = [name for name, _ in parse_qsl(urlsplit(link).query) if name.endswith("kept")]
    assert kept == ["a.kept", "b.kept"]
    assert "userId 42" in viewer.get(link).text


def test_the_oldest_of_a_user_go(viewer):
    links = [viewer.post("/playground/", {"json": long_context(str(n))})["Location"] for n in range(21)]

    assert KeptContext.objects.count() == KEPT_FOR_EACH_USER
    response = viewer.get(links[0])
    assert response.status_code == 400
    assert "The context of this link is no longer stored. Enter it again." in response.text
