"""A change says which other scheduled requests change the same."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from releases.models import ChangeRequest
from tests.support.change_requests import REQUESTS, enter, guarded, propose, sent, turn
from tests.support.playground import live_flag

ARCHIVE = {"feature": "cart", "action": "archiveFeature"}
DEFAULT = {"feature": "cart", "action": "addStrategy", "payload": {"name": "default"}}


@pytest.fixture
def scheduled(api: Any, shop: Any) -> int:
    """A request that turns cart off tomorrow."""
    guarded(0)
    live_flag("cart", strategies=[{"name": "default"}])
    made = sent(api["admin"], turn(False))
    ChangeRequest.objects.update(title="Friday")
    at = (timezone.now() + timedelta(days=1)).isoformat()
    assert enter(api["admin"], made, "Scheduled", scheduledAt=at).status_code == 200
    return int(made["id"])


def conflicts_of(by: Any, made: Any) -> list[Any]:
    shown = by.get(f"{REQUESTS}/{made['id']}").json()
    return [change.get("scheduleConflicts") for change in shown["features"][0]["changes"]]


def test_of_the_same(api, scheduled):
    made = propose(api["owner"], turn(False), DEFAULT)
    assert conflicts_of(api["owner"], made) == [
        {"changeRequests": [{"id": scheduled, "title": "Friday"}]},
        None,
    ]


def test_archiving_changes_all_of_a_flag(api, scheduled):
    made = propose(api["owner"], ARCHIVE)
    assert conflicts_of(api["owner"], made) == [
        {"changeRequests": [{"id": scheduled, "title": "Friday"}]},
    ]


def test_none_with_itself(api, scheduled):
    assert conflicts_of(api["owner"], {"id": scheduled}) == [None]
