"""A time that the API answered means that very moment when it is sent back as ``at``, and includes what happened then."""

import csv
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.http.responses import iso
from groups.access import Caller
from projects.flags.actions import NewFlag, create_flag
from projects.flags.environments.actions import disable_flag, enable_flag
from projects.strategies.actions import add_strategy

pytestmark = pytest.mark.django_db
WHO = Caller.system()
PLACE = ("shop", "f", "production")
FLAG = "/api/admin/projects/shop/features/f"


@pytest.fixture
def events(api: Any, shop: Any) -> list[dict[str, Any]]:
    """Of a flag that was created, on and off within a millisecond, as the API answers them, in their order."""
    create_flag("shop", NewFlag(name="f"), caller=WHO)
    add_strategy(*PLACE, {"name": "default"}, caller=WHO)
    enable_flag(*PLACE, caller=WHO)
    disable_flag(*PLACE, caller=WHO)
    found = api["viewer"].get("/api/admin/events/f").json()["events"][::-1]
    assert [event["type"] for event in found][-2:] == [
        "feature-environment-enabled",
        "feature-environment-disabled",
    ]
    return found


def is_on(api: Any, at: str) -> bool | None:
    """None if there was no flag."""
    body = {"environment": "production", "context": {}, "at": at}
    answer = api["viewer"].post("/api/admin/playground", body)
    assert answer.status_code == 200, answer.json()
    return next((flag["isEnabled"] for flag in answer.json()["features"] if flag["name"] == "f"), None)


def test_the_time_of_an_event_shows_what_was_after_it(api: Any, events: list[dict[str, Any]]) -> None:
    assert [is_on(api, event["createdAt"]) for event in events] == [False, False, True, False]


def test_a_comparison_tells_events_apart(api: Any, events: list[dict[str, Any]]) -> None:
    states = [{"environment": "production", "at": event["createdAt"]} for event in events[-2:]]
    body = {"from": states[0], "to": states[1], "contexts": {"synthetic": 10}}
    answer = api["viewer"].post("/api/admin/playground/compare", body).json()
    assert answer["counts"]["onToOff"] == 10


def test_reverting_to_an_event_and_to_its_time_is_the_same(api: Any, events: list[dict[str, Any]]) -> None:
    for event in events:
        by_event = api["editor"].get(f"{FLAG}/revert?event={event['id']}").json()
        by_time = api["editor"].get(f"{FLAG}/revert", {"at": event["createdAt"]}).json()
        assert by_time["at"] == by_event["at"] == event["createdAt"]
        assert by_time["parts"] == by_event["parts"]


def test_a_flag_is_there_since_it_was_created_and_until_it_was_archived(api: Any, shop: Any) -> None:
    flags = "/api/admin/projects/shop/features"
    created = api["admin"].post(flags, {"name": "f"}).json()["createdAt"]
    assert api["admin"].delete(f"{flags}/f").status_code == 202
    archived = api["admin"].get("/api/admin/archive/features/shop").json()["features"][0]["archivedAt"]
    assert [is_on(api, created), is_on(api, archived)] == [False, None]


def test_the_clock_of_the_database_may_be_ahead(
    api: Any, events: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    behind = timezone.now() - timedelta(minutes=1)
    monkeypatch.setattr(timezone, "now", lambda: behind)
    last = events[-2]["createdAt"]
    assert is_on(api, last) is True
    assert api["editor"].get(f"{FLAG}/revert", {"at": last}).status_code == 200
    states = {"environment": "production", "at": last}, {"environment": "production"}
    body = {"from": states[0], "to": states[1], "contexts": {"synthetic": 10}}
    assert api["viewer"].post("/api/admin/playground/compare", body).status_code == 200
    later = iso(behind + timedelta(hours=1))
    request: dict[str, Any] = {"environment": "production", "context": {}, "at": later}
    assert api["viewer"].post("/api/admin/playground", request).status_code == 200


def test_the_form_of_the_playground_keeps_it(browse: Any, events: list[dict[str, Any]]) -> None:
    at = moment_of(events[-2])
    page = browse("viewer").get("/playground/", {"environment": "production", "at": at}).content.decode()
    assert f'value="{at[:19]}"' in page
    assert f'<input type="hidden" name="at-exactly" value="{at}">' in page
    for seconds in (at[:19], f"{at[:19]}Z"):  # without scripts, and with them
        sent = {"environment": "production", "at": seconds, "at-exactly": at}
        assert ",On," in csv_of(browse, sent)
    other = {"environment": "production", "at": "2020-01-01T00:00:00", "at-exactly": at}
    assert "f,shop" not in csv_of(browse, other)
    cleared = {"environment": "production", "at": "", "at-exactly": at}
    assert ",Off," in csv_of(browse, cleared)


def csv_of(browse: Any, query: dict[str, str]) -> str:
    return b"".join(
        browse("viewer").get("/playground/", {**query, "format": "csv"}).streaming_content
    ).decode()


def moment_of(event: dict[str, Any]) -> str:
    """The time of an event, which has microseconds but once in a thousand times."""
    return f"{event['createdAt'][:-1].ljust(26, '0')}Z"


def test_the_form_of_who_changes_keeps_it(browse: Any, events: list[dict[str, Any]]) -> None:
    before, after = (moment_of(event) for event in events[-2:])
    sent = {"from": "production", "to": "production", "from-at": before[:19], "to-at": after[:19]}
    sent |= {"from-at-exactly": before, "to-at-exactly": after, "for": "users"}
    redirect = browse("viewer").post("/playground/who-changes/", sent)
    page = browse("viewer").get(redirect["Location"])
    assert "from-at=" + before.replace(":", "%3A") in redirect["Location"]
    assert f'name="to-at-exactly" value="{after}"' in page.content.decode()
    table = browse("viewer").get(redirect["Location"] + "&format=csv")
    [row] = csv.DictReader(b"".join(table.streaming_content).decode().splitlines())
    assert (row["Flag"], row["On → off"]) == ("f", row["Change"])


def test_pages_link_to_the_very_moments(browse: Any, events: list[dict[str, Any]]) -> None:
    event = AuditEvent.objects.get(pk=events[-2]["id"])
    before, at = (
        iso(moment).replace(":", "%3A")
        for moment in (event.created_at - timedelta(microseconds=1), event.created_at)
    )
    history = browse("viewer").get(f"/projects/shop/features/f/?version={event.pk}").content.decode()
    assert f"from-at={before}&amp;to=production" in history
    assert f"to-at={at}" in history
    assert f"environment=production&amp;at={at}" in history


def test_the_activity_as_csv_has_it(browse: Any, events: list[dict[str, Any]]) -> None:
    lines = b"".join(browse("admin").get("/activity/?format=csv").streaming_content).decode()
    assert all(event["createdAt"] in lines for event in events)
