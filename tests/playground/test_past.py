"""The playground of a moment in the past: what an application got then."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from groups.access import Caller
from projects.flags.actions import NewFlag, create_flag
from projects.flags.archive import actions as archive
from projects.flags.environments import actions as environments
from projects.models import OutsideChange, VersionsSince
from projects.models.versions import BEGINNING
from projects.strategies import actions as strategies
from tests.support.for_each import for_each
from tests.support.page_text import page_text

pytestmark = pytest.mark.django_db
WHO = Caller.system()
PLACE = ("shop", "f", "production")


@pytest.fixture
def then(shop: Any, monkeypatch: pytest.MonkeyPatch) -> datetime:
    """A moment when f was on for user 42, was not yet deleted, and there was no flag g."""
    now = timezone.now()
    moment = (now - timedelta(days=1)).replace(microsecond=0)
    with monkeypatch.context() as clock:
        clock.setattr(timezone, "now", lambda: moment - timedelta(minutes=1))
        create_flag("shop", NewFlag(name="f"), caller=WHO)
        constraints = [
            {"contextName": "userId", "operator": "IN", "values": ["42"]},
            {
                "contextName": "currentTime",
                "operator": "DATE_BEFORE",
                "value": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            },
        ]
        strategies.add_strategy(*PLACE, {"name": "default", "constraints": constraints}, caller=WHO)
        environments.enable_flag(*PLACE, caller=WHO)
    with monkeypatch.context() as clock:
        clock.setattr(timezone, "now", lambda: moment + timedelta(minutes=1))
        archive.archive_flags("shop", ["f"], caller=WHO)
        archive.delete_flags("shop", ["f"], caller=WHO)
        create_flag("shop", NewFlag(name="g"), caller=WHO)
    return moment


def iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_one_environment(api: Any, then: datetime) -> None:
    body = {"environment": "production", "context": {"userId": 42}, "at": iso(then)}
    answer = api["viewer"].post("/api/admin/playground", body).json()
    assert [(flag["name"], flag["isEnabled"]) for flag in answer["features"]] == [("f", True)]
    assert answer["input"]["at"] == iso(then)
    assert "notes" not in answer
    del body["at"]
    answer = api["viewer"].post("/api/admin/playground", body).json()
    assert [flag["name"] for flag in answer["features"]] == ["g"]


def test_several_environments(api: Any, then: datetime) -> None:
    OutsideChange.objects.create(project_id="shop", noticed_at=timezone.now())
    VersionsSince.objects.create(since=BEGINNING, kept_since=timezone.now())
    body = {"environments": ["production"], "context": {"userId": "42,7"}, "at": iso(then)}
    answer = api["viewer"].post("/api/admin/playground/advanced", body).json()
    [flag] = answer["features"]
    found = [each["isEnabled"] for each in flag["environments"]["production"]]
    assert (flag["name"], found) == ("f", [True, False])
    assert len(answer["notes"]) == 1


def test_a_moment_before_versions_is_unknown(api: Any, browse: Any, then: datetime) -> None:
    VersionsSince.objects.create(since=timezone.now(), kept_since=timezone.now())
    sides = {"environment": "production", "context": {}, "at": iso(then)}
    states = {place: {"environment": "production", "at": iso(then)} for place in ("from", "to")}
    for path, body, at in (
        ("playground", sides, ["at"]),
        ("playground/compare", states | {"contexts": {"explicit": [{}]}}, ["from.at", "to.at"]),
    ):
        found = api["viewer"].post(f"/api/admin/{path}", body)
        assert (found.status_code, [each["path"] for each in found.json()["details"]]) == (400, at)
        assert "are unknown: their versions are stored from" in found.json()["details"][0]["message"]
    url = f"/playground/?environment=production&context.userId=42&at={then:%Y-%m-%dT%H:%M:%S}"
    assert "are unknown: their versions are stored from" in page_text(browse("viewer").get(url))


@for_each("at", [5, "yesterday", "2026-13-01T00:00:00Z", "9999-12-31T23:59:59-23:00"])
def test_refused(api: Any, shop: Any, at: object) -> None:
    body = {"environment": "production", "context": {}, "at": at}
    found = api["viewer"].post("/api/admin/playground", body)
    assert found.status_code == 400
    assert [each["path"] for each in found.json()["details"]] == ["at"]


def test_the_page(browse: Any, then: datetime) -> None:
    url = f"/playground/?environment=production&context.userId=42&at={then:%Y-%m-%dT%H:%M:%S}"
    page = browse("viewer").get(url)
    text = page_text(page)
    assert "1 flag" in text
    assert "Flags as they were on" in text
    assert f'value="{then:%Y-%m-%dT%H:%M:%S}"' in page.content.decode()
    assert (
        f"/playground/flag/f/?environment=production&amp;at={iso(then).replace(':', '%3A')}"
        in page.content.decode()
    )
    assert "Flags as they were on" not in page_text(browse("viewer").get(url.partition("&at")[0]))
    table = b"".join(browse("viewer").get(url + "&format=csv").streaming_content).decode()
    assert table.splitlines()[1].startswith("f,shop,On,")


def test_the_trace(browse: Any, then: datetime) -> None:
    page = browse("viewer").get(
        f"/playground/flag/f/?environment=production&context.userId=42&at={iso(then)}"
    )
    assert page.status_code == 200
    assert "Flags as they were on" in page_text(page)
    assert "Open the flag" not in page_text(page)  # it has been deleted


def test_two_moments_side_by_side(browse: Any, then: datetime) -> None:
    sides = f"a.environment=production&b.environment=production&a.context.userId=42&b.context.userId=42&a.at={iso(then)}"
    text = page_text(browse("viewer").get(f"/playground/compare/?{sides}"))
    assert "2 of 2 flags differ" in text
    assert "Flags as they were on" in text


def test_a_moment_long_ago(browse: Any, shop: Any) -> None:
    page = browse("viewer").get("/playground/?environment=production&at=0001-01-01T00:00:00.5Z")
    assert "at=0001-01-01T00%3A00%3A00.500000Z" in page.content.decode()
    assert "no active flags" in page_text(page)


def test_a_bad_moment_is_told(browse: Any, shop: Any) -> None:
    page = browse("viewer").get("/playground/?environment=production&at=later")
    assert page.status_code == 400
    assert "Flags as of: must be a time" in page_text(page)
