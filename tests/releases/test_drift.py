"""What was approved is what is applied: a request that has come to change something else is reviewed again."""

from typing import Any

import pytest

from groups.access import Caller
from playground.models import SavedContext
from projects.models import Flag, ProjectEnvironment, Segment, Strategy
from projects.segments.actions import update_segment
from releases.models import ChangeRequest
from releases.requests import impact
from tests.support.change_requests import REQUESTS, guarded, sent, turn
from tests.support.flags import is_on
from tests.support.page_text import page_text
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def approved(api: Any, shop: Any) -> str:
    """The URL of an approved request that turns a flag of a segment on."""
    guarded(1)
    segment = Segment.objects.create(name="nordic", constraints=[where("NO")])
    live_flag("cart", enabled=False, strategies=[{"name": "default", "segments": [segment]}])
    SavedContext.objects.create(name="Dane", context={"properties": {"country": "DK"}})
    url = f"{REQUESTS}/{sent(api['owner'], turn(True))['id']}"
    assert enter(api["admin"], url, "Approved").status_code == 200
    return url


def where(*countries: str) -> dict[str, Any]:
    return {"contextName": "country", "operator": "IN", "values": list(countries)}


def enter(by: Any, url: str, state: str) -> Any:
    return by.put(f"{url}/state", {"state": state}, format="json")


def add_denmark() -> None:
    Segment.objects.filter(name="nordic").update(constraints=[where("NO", "DK")])


def test_it_is_applied_if_the_same_changes(api, approved):
    answer = api["viewer"].get(approved).json()
    assert answer["approvals"][0]["impact"] == answer["impact"]
    assert answer["impact"]["counts"] == {"offToOn": answer["impact"]["changed"]}
    assert not answer["impact"]["onlyTurnsOff"]
    assert enter(api["admin"], approved, "Applied").status_code == 200
    assert is_on()


def test_approvals_are_withdrawn_once_something_else_changes(api, browse, approved):
    page = approved.removeprefix("/api/admin") + "/"
    add_denmark()
    before = page_text(browse("viewer").get(page))
    assert "Applying it withdraws its approvals and changes nothing." in before
    refused = enter(api["admin"], approved, "Applied")
    assert refused.status_code == 409
    assert "it no longer changes what was approved." in refused.json()["message"]
    assert "The constraints of segment nordic have changed." in refused.json()["message"]
    assert not is_on()
    shown = api["viewer"].get(approved).json()
    assert (shown["state"], shown["approvals"]) == ("In review", [])
    assert shown["moved"]["withdrawn"] == ["admin"]
    assert shown["moved"]["after"]["changed"] > shown["moved"]["before"]["changed"]
    assert shown["moved"]["reasons"]
    text = page_text(browse("viewer").get(page))
    assert "1 approval is withdrawn." in text
    assert "Withdrawn" in text
    assert enter(api["admin"], approved, "Approved").json()["state"] == "Approved"
    assert "moved" not in api["viewer"].get(approved).json()
    assert enter(api["admin"], approved, "Applied").status_code == 200
    assert is_on()


def test_its_page_names_who_has_moved_it_and_whose_approvals_are_withdrawn(api, browse, approved, people):
    people["admin"].name = "Ada Admin"
    people["admin"].save()
    segment = Segment.objects.get(name="nordic")
    changes = {"constraints": [where("NO", "DK")]}
    update_segment(segment.pk, changes, caller=Caller(user=people["admin"]))
    page = browse("viewer")
    address = approved.removeprefix("/api/admin") + "/"
    assert "Ada Admin changed segment nordic, " in page_text(page.get(address))
    enter(api["admin"], approved, "Applied")
    text = page_text(page.get(address))
    assert "Ada Admin changed segment nordic, " in text
    assert "Ada Admin Withdrawn" in text
    ChangeRequest.objects.get().reviewers.set([people["admin"]])
    assert page_text(page.get(address)).count("Ada Admin Withdrawn") == 1
    shown = page_text(browse("admin").get(address))
    assert "Ada Admin Your turn" in shown
    assert "Ada Admin Withdrawn" not in shown


def test_a_second_approval_withdraws_one_of_something_else(api, approved):
    ProjectEnvironment.objects.filter(environment="production").update(required_approvals=2)
    ChangeRequest.objects.update(state="In review", required_approvals=2)
    review = ChangeRequest.objects.get().reviews.get()
    review.author, review.author_name = None, "somebody who left"
    review.save()
    add_denmark()
    answer = enter(api["admin"], approved, "Approved").json()
    assert (answer["state"], len(answer["approvals"])) == ("In review", 1)
    assert answer["moved"]["withdrawn"] == ["somebody who left"]


def test_an_edit_that_changes_nobody_now_is_another_change_all_the_same(api, approved):
    Strategy.objects.create(
        flag=Flag.objects.get(name="cart"),
        environment_id="production",
        name="flexibleRollout",
        parameters={"rollout": "0", "stickiness": "default", "groupId": "cart"},
        sort_order=1,
    )
    refused = enter(api["admin"], approved, "Applied")
    assert refused.status_code == 409
    assert "The strategies of cart have changed." in refused.json()["message"]


def test_reading_a_request_locks_nothing(browse, approved, django_assert_max_num_queries):
    viewer, page = browse("viewer"), approved.removeprefix("/api/admin") + "/"
    with django_assert_max_num_queries(80) as queries:
        assert viewer.get(page).status_code == 200
    statements = [query["sql"] for query in queries.captured_queries]
    ours = [sql for sql in statements if "releases_" in sql or "projects_" in sql]
    assert not [sql for sql in ours if not sql.lstrip().startswith(("SELECT", "WITH")) or " FOR " in sql]


def test_its_page_counts_nobody_again_until_something_has_changed(browse, approved, monkeypatch):
    """Without a summary, as of a request that was sent before there were any, it shows the same."""
    page = f"{approved.removeprefix('/api/admin')}/"
    summarized = page_text(browse("viewer").get(page))
    with monkeypatch.context() as patched:
        patched.setattr(impact, "measure_difference", None)
        assert page_text(browse("viewer").get(page)) == summarized
    ChangeRequest.objects.update(summary=None)
    assert page_text(browse("viewer").get(page)) == summarized
    add_denmark()
    assert page_text(browse("viewer").get(page)) != summarized
