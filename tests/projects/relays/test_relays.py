"""Relays say how they are; admins see the last report of each, by API and page."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from flagadmin.core.metrics import process_name
from projects.models import Relay
from projects.relays import reports
from projects.relays.reports import State
from tests.support.cast import client, make_token
from tests.support.for_each import for_each
from tests.support.metrics import Values
from tests.support.page_text import page_text

pytestmark = pytest.mark.django_db
REPORTS, API, PAGE = "/api/client/relays", "/api/admin/relays", "/relays/"


def make_report(identifier: str = "relay-of-eu", **fields: Any) -> dict[str, Any]:
    report = {
        "id": identifier,
        "region": "eu",
        "version": "1.3.0",
        "uptimeSeconds": 90,
        "intervalSeconds": 60,
    }
    return report | {"flagsAgeSeconds": 2, "tokens": 12, "clients": 40, "streams": 3} | fields


@pytest.fixture
def backend(shop: Any) -> Any:
    return client(make_token("backend", environment="production"))


def report(backend: Any, *relays: dict[str, Any]) -> int:
    status: int = backend.post(REPORTS, {"relays": list(relays)}).status_code
    return status


def test_the_last_report_of_each_is_listed(backend: Any, api: Any, standing_clock: Any) -> None:
    assert (
        report(backend, make_report(tokens=1), make_report("relay-of-us", region="us", secondsAgo=20)) == 202
    )
    assert report(backend, make_report()) == 202
    eu, us = api["admin"].get(API).json()["relays"]
    at = {key: eu.pop(key) for key in ("startedAt", "lastReportAt", "flagsReadAt")}
    assert eu == {
        "id": "relay-of-eu",
        "region": "eu",
        "state": "working",
        "description": "Works",
        "version": "1.3.0",
        "tokens": 12,
        "clients": 40,
        "streams": 3,
        "batchesWaiting": 0,
    }
    assert at["startedAt"] < at["flagsReadAt"] < at["lastReportAt"]
    assert us["lastReportAt"] < at["lastReportAt"]


def test_a_report_that_is_passed_on_late_replaces_no_later_one(backend: Any, api: Any) -> None:
    """As of a relay that is behind two others in turns."""
    assert report(backend, make_report(tokens=2, secondsAgo=10)) == 202
    assert report(backend, make_report(tokens=1, secondsAgo=900)) == 202
    assert report(backend, make_report(tokens=2, secondsAgo=5), make_report(tokens=1, secondsAgo=900)) == 202
    [listed] = api["admin"].get(API).json()["relays"]
    assert (listed["tokens"], listed["state"]) == (2, "working")
    Relay.objects.update(heard_at=timezone.now() + timedelta(days=1))  # when the clock was wrong
    assert report(backend, make_report(tokens=3)) == 202
    assert Relay.objects.get().tokens == 3


@for_each(
    ("fields", "seconds_later", "state", "words"),
    [
        ({}, 0, State.WORKING, "Works"),
        ({"flagsAgeSeconds": 900}, 0, State.OLD_FLAGS, "Its flags are 15 minutes old"),
        ({"faults": ["The disk is full."]}, 0, State.FAULTY, "The disk is full."),
        ({"faults": ["The disk is full."]}, 600, State.SILENT, "Not heard of for 10 minutes"),
        ({"intervalSeconds": 600}, 600, State.WORKING, "Works"),
    ],
)
def test_states_in_words(
    backend: Any,
    browse: Any,
    counted: Callable[[], Values],
    fields: dict[str, Any],
    seconds_later: int,
    state: State,
    words: str,
) -> None:
    report(backend, make_report(**fields))
    Relay.objects.update(heard_at=timezone.now() - timedelta(seconds=seconds_later))
    assert words in page_text(browse("admin").get(PAGE)).replace("\xa0", " ")
    reports.review_relays()
    labels = f'process="{process_name()}",state="{state}"'
    assert counted()[f"flagadmin_relays{{{labels}}}"] == 1


def test_without_relays_the_page_says_how_to_start_one(browse: Any) -> None:
    assert "flagadmin relay --upstream http://testserver" in page_text(browse("admin").get(PAGE))


def test_relays_are_for_admins_and_report_with_backend_tokens(
    backend: Any, api: Any, browse: Any, shop: Any
) -> None:
    assert api["editor"].get(API).status_code == browse("editor").get(PAGE).status_code == 403
    assert backend.get(API).status_code in (401, 403)

    assert report(client(make_token("frontend", environment="production")), make_report()) == 403
    assert report(client(), make_report()) == 401


@for_each(
    "wrong",
    [
        {"relays": "one"},
        {"relays": [make_report("x")]},
        {"relays": [make_report(tokens=-1)]},
        {"relays": [make_report(intervalSeconds=0)]},
        {"relays": [make_report(uptimeSeconds=1e12)]},
        {"relays": [make_report(faults=["x" * 301])]},
        {},
    ],
)
def test_wrong_reports_are_refused(backend: Any, wrong: dict[str, Any]) -> None:
    response = backend.post(REPORTS, wrong)
    assert (response.status_code, Relay.objects.count()) == (400, 0)
    assert response.json()["details"][0]["path"].startswith("relays")


def test_those_silent_longest_are_forgotten(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "MAX_RELAYS", 2)
    report(backend, *(make_report(f"relay-{number:04}", secondsAgo=number) for number in range(4)))
    assert set(Relay.objects.values_list("pk", flat=True)) == {"relay-0000", "relay-0001"}
    Relay.objects.filter(pk="relay-0000").update(heard_at=timezone.now() - timedelta(days=31))
    reports.review_relays()
    assert list(Relay.objects.values_list("pk", flat=True)) == ["relay-0001"]
