"""Nobody approves, ends, applies or schedules what they have not read: the author may have edited it since."""

import re
from typing import Any

import pytest

from projects.models import Flag
from releases.models import ChangeRequest
from tests.support.change_requests import REQUESTS, SHOP, enter, guarded, sent, turn
from tests.support.page_text import page_text
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db(transaction=True)
ROLLOUT = {"feature": "cart", "action": "addStrategy", "payload": {"name": "default"}}


def read_etag(by: Any, request: Any) -> str:
    etag: str = by.get(f"{REQUESTS}/{request['id']}")["ETag"]
    return etag


def read_hidden(page: Any) -> dict[str, str]:
    """The versions that the forms of the page post."""
    return dict(re.findall(r'<input type="hidden" name="(proposal|effect)" value="(\w+)"', page.text))


def edit(by: Any, request: Any) -> None:
    change = by.get(f"{REQUESTS}/{request['id']}").json()["features"][0]["changes"][0]
    edited = by.put(f"{REQUESTS}/{request['id']}/changes/{change['id']}", ROLLOUT, format="json")
    assert edited.status_code == 200, edited.json()


@pytest.mark.parametrize("state", ["Approved", "Rejected"])
def test_what_was_edited_since_is_not_reviewed(api, cart, state):
    made = sent(api["member"], turn(False))
    etag = read_etag(api["admin"], made)
    edit(api["member"], made)
    refused = enter(api["admin"], made, state, headers={"If-Match": etag})
    assert (refused.status_code, refused.json()["current"][0]["action"]) == (412, "addStrategy")
    assert ChangeRequest.objects.get().state == "In review"
    reviewed = enter(api["admin"], made, state, headers={"If-Match": read_etag(api["admin"], made)})
    assert reviewed.json()["state"] == state


def test_a_comment_is_no_edit(api, cart):
    made = sent(api["member"], turn(False))
    etag = read_etag(api["admin"], made)
    api["viewer"].post(f"{REQUESTS}/{made['id']}/comments", {"text": "Why?"}, format="json")
    assert read_etag(api["admin"], made) != etag
    assert enter(api["admin"], made, "Approved", headers={"If-Match": etag}).status_code == 200


@pytest.mark.parametrize("state", ["Applied", "Scheduled"])
def test_what_was_edited_and_approved_since_is_neither_applied_nor_scheduled(api, cart, state):
    made = sent(api["member"], turn(False))
    enter(api["admin"], made, "Approved")
    etag = read_etag(api["admin"], made)
    edit(api["member"], made)
    enter(api["admin"], made, "Approved")
    at = {"scheduledAt": "2099-01-01T00:00:00Z"} if state == "Scheduled" else {}
    assert enter(api["admin"], made, state, headers={"If-Match": etag}, **at).status_code == 412
    assert enter(api["admin"], made, state, **at).json()["state"] == state


def test_the_page_approves_what_it_has_shown(api, browse, cart):
    made, admin = sent(api["member"], turn(False)), browse("admin")
    address = f"/projects/shop/change-requests/{made['id']}/"
    shown, approval = read_hidden(admin.get(address)), {"state": "Approved"}
    edit(api["member"], made)
    page = page_text(admin.post(f"{address}state", approval | shown, follow=True))
    assert f"Change request {made['id']} has been edited since you opened it." in page
    assert ChangeRequest.objects.get().state == "In review"
    admin.post(f"{address}state", approval | read_hidden(admin.get(address)))
    assert ChangeRequest.objects.get().state == "Approved"
    assert api["viewer"].get(f"{SHOP}/change-requests/{made['id']}").json()["state"] == "Approved"


@pytest.fixture
def off(shop: Any) -> Flag:
    guarded(1)
    return live_flag("cart", enabled=False, strategies=[{"name": "default"}])


def add_variant(by: Any) -> None:
    """Something that the gate lets through: nobody gets the flag yet."""
    variants = [{"name": "evil", "weight": 1000, "weightType": "variable", "stickiness": "default"}]
    answer = by.put(f"{SHOP}/features/cart/environments/production/variants", variants, format="json")
    assert answer.status_code == 200, answer.json()


def test_an_effect_that_was_not_read_is_not_approved(api, off):
    made = sent(api["member"], turn(True))
    etag = read_etag(api["admin"], made)
    add_variant(api["member"])
    refused = enter(api["admin"], made, "Approved", headers={"If-Match": etag})
    assert refused.status_code == 412
    assert "its effect has changed since you opened it. member " in refused.json()["message"]
    assert not api["admin"].get(f"{REQUESTS}/{made['id']}").json()["approvals"]
    assert enter(api["admin"], made, "Approved", headers={"If-Match": refused["ETag"]}).status_code == 412
    etag = read_etag(api["admin"], made)
    assert enter(api["admin"], made, "Approved", headers={"If-Match": etag}).json()["state"] == "Approved"


@pytest.mark.parametrize("state", ["Rejected", "Cancelled"])
def test_another_effect_does_not_keep_a_request_open(state, api, off):
    made = sent(api["member"], turn(True))
    etag = read_etag(api["admin"], made)
    add_variant(api["member"])
    assert enter(api["admin"], made, state, headers={"If-Match": etag}).json()["state"] == state


@pytest.mark.parametrize("label", ["", "Comment"])
def test_the_page_approves_the_effect_that_it_has_shown(label, api, browse, off):
    made, admin = sent(api["member"], turn(True)), browse("admin")
    address = f"/projects/shop/change-requests/{made['id']}/"
    shown = read_hidden(admin.get(address))
    assert set(shown) == {"proposal", "effect"}
    add_variant(api["member"])
    approval = {"state": "Approved", "comment": label}
    page = page_text(admin.post(f"{address}state", shown | approval, follow=True))
    assert "its effect has changed since you opened it." in page
    assert ChangeRequest.objects.get().state == "In review"
    without_effect = {"proposal": shown["proposal"]} | approval  # as a page of the version before
    admin.post(f"{address}state", without_effect)
    assert ChangeRequest.objects.get().state == "In review"
    admin.post(f"{address}state", read_hidden(admin.get(address)) | approval)
    assert ChangeRequest.objects.get().state == "Approved"


def test_each_form_that_approves_posts_the_effect(api, browse, off):
    made = sent(api["member"], turn(True))
    page = browse("admin").get(f"/projects/shop/change-requests/{made['id']}/").text
    forms = [form for form in page.split("<form")[1:] if 'value="Approved"' in form.partition("</form>")[0]]
    assert len(forms) == 2
    assert all('name="effect"' in form for form in forms)


@pytest.mark.parametrize(
    ("verb", "by", "state"), [("Reject", "admin", "Rejected"), ("Cancel", "member", "Cancelled")]
)
def test_the_page_that_ends_a_request_ends_what_was_read(verb, by, state, api, browse, cart):
    made, person = sent(api["member"], turn(False)), browse(by)
    address = f"/projects/shop/change-requests/{made['id']}/"

    def follow_link() -> tuple[str, Any]:
        [link] = re.findall(rf'href="([^"]+)">{verb}', person.get(address).text)
        return link.partition("?")[0], dict(person.get(link).context["hidden"])

    confirmation, shown = follow_link()
    edit(api["member"], made)
    for _ in range(2):
        refused = person.post(confirmation, shown)
        assert refused.status_code == 409
        assert "has been edited since you opened it." in page_text(refused)
        shown = dict(refused.context["hidden"])
    assert ChangeRequest.objects.get().state == "In review"
    confirmation, shown = follow_link()
    person.post(confirmation, shown)
    assert ChangeRequest.objects.get().state == state
