"""Lists of change requests by API: what they cost, and what stands against each request."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from projects.models import Flag, FlagEnvironment
from releases.models import Change, ChangeRequest, Schedule
from releases.requests.conflicts import find_conflicting
from tests.support.cast import make_project
from tests.support.change_requests import REQUESTS, guarded
from tests.support.for_each import for_each
from tests.support.playground import live_flag

State = ChangeRequest.State


@pytest.fixture
def carts(shop: Any) -> list[Flag]:
    guarded(1)
    return [live_flag(name, strategies=[{"name": "default"}]) for name in ("cart", "cart-2")]


def make_request(flag: str, state: str = State.IN_REVIEW) -> ChangeRequest:
    request = ChangeRequest.objects.create(
        project_id="shop", environment_id="production", state=state, author_name="aisha"
    )
    Change.objects.create(
        request=request, feature=flag, action="updateEnabled", payload={"enabled": False}, made_from=True
    )
    if state == State.SCHEDULED:
        Schedule.objects.create(request=request, at=timezone.now() + timedelta(days=1), by_name="aisha")
    return request


def list_changes(api: Any, path: str) -> dict[int, dict[str, Any]]:
    """The only change of each request, by the request's id."""
    requests = api["viewer"].get(f"{REQUESTS}{path}").json()
    return {request["id"]: request["features"][0]["changes"][0] for request in requests}


@for_each("path", ["", "/open", "/pending", "/pending/cart"])
def test_a_list_takes_as_many_queries_for_many_requests(api, carts, path):
    make_request("cart")
    with CaptureQueriesContext(
        connection,
    ) as of_one:
        assert len(list_changes(api, path)) == 1
    for state in (State.IN_REVIEW, State.APPROVED, State.SCHEDULED, State.SCHEDULED):
        make_request("cart", state)
    with CaptureQueriesContext(connection) as of_many:
        assert len(list_changes(api, path)) == 5
    assert len(of_many) <= len(of_one)


def test_each_request_of_a_list_has_what_stands_against_it(api, carts):
    in_review, scheduled, other = (
        make_request("cart"),
        make_request("cart", State.SCHEDULED),
        make_request("cart-2"),
    )
    FlagEnvironment.objects.filter(flag__name="cart-2").update(enabled=False)
    changes = list_changes(api, "/open")
    assert changes[in_review.pk]["scheduleConflicts"] == {"changeRequests": [{"id": scheduled.pk}]}
    assert "scheduleConflicts" not in changes[scheduled.pk]
    assert [pk for pk, change in changes.items() if "conflict" in change] == [other.pk]


def test_conflicts_are_found_in_the_same_queries_for_any_number_of_projects(shop: Any) -> None:
    for number in range(4):
        live_flag(f"flag-{number}", make_project(f"p{number}").pk)
        request = ChangeRequest.objects.create(
            project_id=f"p{number}", environment_id="production", author_name="aisha"
        )
        for name in (f"flag-{number}", f"flag-{(number + 1) % 4}"):  # the second one is in another project
            body = {"action": "updateEnabled", "payload": {"enabled": False}, "made_from": True}
            Change.objects.create(request=request, feature=name, **body)
    changes = list(Change.objects.select_related("request").order_by("pk"))
    assert find_conflicting(changes) == {change.pk for change in changes[1::2]}

    def count(listed: list[Change]) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert find_conflicting(listed) == set()
        return len(queries)

    assert count(changes[:1]) == count(changes[::2])
