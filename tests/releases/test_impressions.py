"""Impression data makes SDKs report each evaluation: where requests are required, a request changes it."""

import pytest

from projects.models import Flag
from tests.support.change_requests import SHOP, enter, guarded, reviewer, sent
from tests.support.page_text import page_text
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db(transaction=True)
CART = f"{SHOP}/features/cart"
CHANGE = {"feature": "cart", "action": "updateImpressionData", "payload": {"impressionData": True}}


@pytest.fixture
def cart(shop):
    guarded(1)
    return live_flag("cart", strategies=[{"name": "default"}])


def patch(by, path, value, url=CART):
    return by.patch(url, [{"op": "replace", "path": path, "value": value}], format="json")


def test_impression_data_of_a_flag_that_is_on_needs_a_request(api, browse, cart):
    refused = patch(api["member"], "/impressionData", True)
    assert (refused.status_code, refused.json()["permissions"]) == (403, ["SKIP_CHANGE_REQUEST"])
    page = browse("member").post("/projects/shop/features/cart/impression-data", {"impression_data": "on"})
    assert "Send for review" in page_text(page)
    assert not Flag.objects.get().impression_data


def test_words_about_a_flag_and_impression_data_of_one_that_is_off_need_none(api, cart):
    live_flag("off", enabled=False)
    for path, value in (("/stale", True), ("/description", "Pays"), ("/type", "kill-switch")):
        assert patch(api["member"], path, value).status_code == 200, path
    assert patch(api["member"], "/impressionData", True, f"{SHOP}/features/off").status_code == 200


def test_a_request_changes_it_and_takes_it_back(api, cart):
    release = reviewer("rita", "APPROVE_CHANGE_REQUEST", "APPLY_CHANGE_REQUEST", environment=None)
    request = sent(api["member"], CHANGE)
    for state in ("Approved", "Applied"):
        assert enter(release, request, state).status_code == 200
    assert Flag.objects.get().impression_data
    revert = api["member"].post(f"{SHOP}/change-requests/{request['id']}/revert").json()
    [change] = revert["features"][0]["changes"]
    assert (change["action"], change["payload"]) == ("updateImpressionData", {"impressionData": False})
    for state in ("Approved", "Applied"):
        assert enter(release, revert, state).status_code == 200
    assert not Flag.objects.get().impression_data
