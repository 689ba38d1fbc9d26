"""GET /api/admin/search/change-requests."""

from typing import Any

import pytest

from tests.support.change_requests import REQUESTS, enter, guarded, propose, sent, turn
from tests.support.for_each import for_each
from tests.support.playground import live_flag

SEARCH = "/api/admin/search/change-requests"


@pytest.fixture
def requests(shop: Any, api: Any, people: Any) -> list[int]:
    """A cancelled request of the owner, who asked the admin, and a draft of the same."""
    guarded(1)
    live_flag("cart", strategies=[{"name": "default"}])
    owner, asked = api["owner"], {"reviewers": [people["admin"].pk]}
    cancelled = sent(owner, turn(False))
    assert owner.put(f"{REQUESTS}/{cancelled['id']}/approvers", asked, format="json").status_code == 204
    assert enter(owner, cancelled, "Cancelled").status_code == 200
    return [cancelled["id"], propose(owner, turn(False))["id"]]


def found(api: Any, who: str, query: str = "") -> list[int]:
    answer = api[who].get(f"{SEARCH}?{query}").json()
    return [request["id"] for request in answer["changeRequests"]]


@pytest.mark.django_db(transaction=True)
def test_found_by_state_author_and_reviewer_where_the_caller_may_read(api, people, requests):
    cancelled, draft = requests
    assert found(api, "owner") == [draft, cancelled]
    assert found(api, "admin") == [cancelled]
    assert found(api, "outsider") == []
    assert found(api, "owner", "state=IS:open") == [draft]
    assert found(api, "owner", "state=IS:closed") == [cancelled]
    assert found(api, "owner", f"requestedApproverId=IS:{people['admin'].pk}") == [cancelled]
    assert found(api, "owner", f"createdBy=IS:{people['admin'].pk}") == []
    assert found(api, "owner", f"createdBy=IS:{people['owner'].pk}&limit=1&offset=1") == [cancelled]
    document = api["owner"].get(f"{SEARCH}?limit=1").json()
    assert document["total"] == 2
    request = document["changeRequests"][0]
    assert request | {"createdAt": ""} == {
        "id": draft,
        "environment": "production",
        "project": "shop",
        "features": ["cart"],
        "segments": [],
        "createdBy": {"id": people["owner"].pk, "username": "owner", "imageUrl": ""},
        "createdAt": "",
        "state": "Draft",
    }


@for_each("query", ["state=IS:mine", "state=open", "createdBy=IS:x", "nosuch=1"])
def test_what_it_does_not_know_is_refused(api, shop, query):
    assert api["viewer"].get(f"{SEARCH}?{query}").status_code == 400
