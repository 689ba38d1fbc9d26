"""The start page says which requests wait, what is drafted, what comes next; and flags have marks of them."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from groups.access import Caller
from projects.models import Flag, ProjectEnvironment, Segment, Strategy
from releases.derive import ProposedChange
from releases.models import ChangeRequest, Schedule
from releases.plans.actions import pause_plan
from releases.requests.propose import add_changes, send_changes
from releases.requests.queries import visible_requests, waiting_for
from releases.requests.states import set_state
from releases.schedules.actions import schedule_request
from tests.support.cast import make_project
from tests.support.page_text import page_text
from tests.support.plans import PLACE, WHO, started
from tests.support.plans import cart as plan_of
from tests.support.playground import live_flag
from tests.support.search_hits import names

pytestmark = pytest.mark.django_db
OFF = ProposedChange("cart", "updateEnabled", {"enabled": False})
FLAG, LIST = "/projects/shop/features/cart/", "/projects/shop/"


@pytest.fixture
def cart(shop: Any) -> Flag:
    ProjectEnvironment.objects.filter(project="shop", environment="production").update(required_approvals=1)
    return live_flag("cart", strategies=[{"name": "flexibleRollout", "parameters": {"rollout": "10"}}])


@pytest.fixture
def callers(people: Any) -> dict[str, Caller]:
    return {name: Caller(user=user) for name, user in people.items()}


def waiting(caller: Caller) -> list[int]:
    return sorted(waiting_for(caller, visible_requests(caller)).values_list("pk", flat=True))


def roll_out(percent: int) -> ProposedChange:
    strategy = Strategy.objects.get(flag__name="cart", environment="production")
    parameters = {"rollout": f"{percent}", "stickiness": "default", "groupId": "cart"}
    return ProposedChange("cart", "updateStrategy", {"id": f"{strategy.pk}", "parameters": parameters})


def test_what_waits_for_whom(cart, callers):
    request = send_changes("shop", "production", [OFF], caller=callers["owner"])
    assert waiting(callers["admin"]) == [request.pk]
    assert [waiting(callers[name]) for name in ("owner", "member", "viewer", "outsider")] == [[], [], [], []]
    set_state("shop", request.pk, "Approved", caller=callers["admin"])
    assert waiting(callers["admin"]) == [request.pk]  # to be applied
    set_state("shop", request.pk, "Applied", caller=callers["admin"])
    assert waiting(callers["admin"]) == []


def test_what_an_admin_asks_for_waits_for_others_until_it_is_approved(cart, callers):
    request = send_changes("shop", "production", [OFF], caller=callers["admin"])
    assert waiting(callers["admin"]) == []
    set_state("shop", request.pk, "Approved", caller=callers["admin"])
    assert waiting(callers["admin"]) == [request.pk]  # to be applied


def test_what_needs_no_approval_waits_for_its_author(cart, callers):
    ProjectEnvironment.objects.filter(environment="production").update(required_approvals=None)
    request = send_changes("shop", "production", [OFF], caller=callers["member"])
    assert waiting(callers["member"]) == [request.pk]
    assert waiting(callers["owner"]) == []


def test_the_start_page_is_an_inbox(browse, cart, callers):
    request = send_changes("shop", "production", [OFF], title="No cart tonight", caller=callers["owner"])
    add_changes("shop", "production", [roll_out(50)], caller=callers["owner"])
    admin, owner = page_text(browse("admin").get("/")), page_text(browse("owner").get("/"))
    assert "Waiting for you 1" in admin
    assert "No cart tonight" in admin
    assert "100 % of users" not in admin
    assert "Your drafts" not in admin
    assert "Waiting for you" not in owner
    assert "1 change, not sent: Roll out cart to 50 % of users" in owner
    set_state("shop", request.pk, "Approved", caller=callers["admin"])
    schedule_request("shop", request.pk, timezone.now() + timedelta(days=1), caller=callers["admin"])
    admin = browse("admin").get("/")
    assert "Scheduled next" in page_text(admin)
    assert "/playground/?environment=production&amp;at=" in admin.text
    Schedule.objects.update(status="suspended", reason="cart has been archived.")
    admin = page_text(browse("admin").get("/"))
    assert "Scheduled next" not in admin
    assert "No cart tonight was not applied" in admin
    assert "cart has been archived." in admin


def test_the_inbox_has_the_numbers_of_the_request_now(browse, cart, callers):
    sent = send_changes("shop", "production", [roll_out(50)], title="Half of them", caller=callers["owner"])
    admin, request = browse("admin"), f"/projects/shop/change-requests/{sent.pk}/"
    page = admin.get("/")
    share = re.search(r"([\d.]+ %) of users", page_text(page))
    assert share
    assert f"({share[1]})" in page_text(admin.get(request))
    assert "conflict" not in page_text(page)
    assert 'class="btn small main"' in page.text.partition("Half of them")[2].partition("</section>")[0]

    Strategy.objects.update(parameters={"rollout": "20", "stickiness": "default", "groupId": "cart"})
    page = admin.get("/")
    moved = re.search(r"([\d.]+ %) of users", page_text(page))
    assert moved
    assert moved[1] != share[1]
    assert f"({moved[1]})" in page_text(admin.get(request))
    assert "1 conflict" in page_text(page)
    assert 'class="btn small main"' not in page.text.partition("Half of them")[2].partition("</section>")[0]


def test_a_conflict_is_marked_wherever_the_request_is(browse, cart, callers):
    sent = send_changes("shop", "production", [roll_out(50)], caller=callers["owner"])
    pages = (LIST, FLAG, "/projects/shop/change-requests/")
    viewer = browse("viewer")
    assert not any("onflict" in viewer.get(page).text for page in pages)
    Strategy.objects.update(parameters={"rollout": "20", "stickiness": "default", "groupId": "cart"})
    assert f"Request {sent.pk} Conflict" in page_text(viewer.get(LIST))
    assert "(in review) Conflict" in page_text(viewer.get(FLAG))
    assert "In review 1 conflict" in page_text(viewer.get("/projects/shop/change-requests/"))


def test_nobody_sees_what_they_cannot_read(browse, cart, callers):
    send_changes("shop", "production", [OFF], title="No cart tonight", caller=callers["owner"])
    assert "No cart tonight" not in browse("outsider").get("/").text


def test_flags_lists_and_forms_have_marks(browse, cart, callers):
    request = send_changes("shop", "production", [roll_out(50)], caller=callers["owner"])
    mark = f"Request {request.pk}: Roll out cart to 50 % of users (in review)"
    strategy = Strategy.objects.get(flag=cart, environment="production")
    query = f"environmentId=production&strategyId={strategy.pk}"
    viewer, owner = browse("viewer"), browse("owner")
    assert mark in page_text(viewer.get(FLAG))
    assert mark in page_text(owner.get(f"{FLAG}strategies/edit?{query}"))
    assert mark in page_text(owner.get(f"{FLAG}switch?environment=production&enabled=off"))
    assert mark in page_text(owner.get("/projects/shop/features/archive?name=cart"))
    many = "/projects/shop/features/switch?name=cart&enabled=off&environment="
    assert mark in page_text(owner.get(f"{many}production"))
    assert mark not in page_text(owner.get(f"{many}development"))
    assert f">Request {request.pk}</a>" in viewer.get(LIST).text
    set_state("shop", request.pk, "Approved", caller=callers["admin"])
    schedule_request("shop", request.pk, timezone.now() + timedelta(days=1), caller=callers["admin"])
    assert f"Request {request.pk}: Roll out cart to 50 % of users on " in page_text(viewer.get(FLAG))
    set_state("shop", request.pk, "Cancelled", caller=callers["admin"])
    assert f"Request {request.pk}" not in viewer.get(LIST).text


def test_drafts_leave_no_marks(browse, cart, callers):
    add_changes("shop", "production", [OFF], caller=callers["owner"])
    assert ChangeRequest.objects.exists()
    assert "Turn cart off" not in page_text(browse("owner").get(FLAG))


def test_a_flag_that_was_moved_has_no_marks_of_what_was_proposed_before(browse, cart, callers):
    send_changes("shop", "production", [OFF], caller=callers["owner"])
    assert "Turn cart off" in page_text(browse("admin").get(FLAG))
    Flag.objects.filter(name="cart").update(project=make_project("docs"))
    assert "Turn cart off" not in page_text(browse("admin").get(FLAG.replace("shop", "docs")))


def test_the_start_page_has_running_release_plans(browse, shop):
    plan_of(5)
    plan, owner = started(5, 50), browse("owner")
    text = page_text(owner.get("/"))
    assert "Running release plans" in text
    assert "Shop, production · 50 %" in text
    assert "Now 5 % at step 1 of 2" in text
    pause_plan(PLACE, plan.pk, reason="Errors rise", caller=WHO)
    assert "Paused: Errors rise" in page_text(owner.get("/"))
    assert "Running release plans" not in page_text(browse("outsider").get("/"))


def test_segments_have_marks(browse, cart, callers):
    segment = Segment.objects.create(name="nordic", constraints=[], project_id="shop")
    payload = {
        "id": segment.pk,
        "constraints": [{"contextName": "country", "operator": "IN", "values": ["NO"]}],
    }
    changes = [ProposedChange("", "updateSegment", payload)]
    request = send_changes("shop", "production", changes, caller=callers["owner"])
    mark, page = f"Request {request.pk}: Change segment nordic (in review)", f"/segments/{segment.pk}/"
    assert mark in page_text(browse("owner").get(page))
    assert f"Request {request.pk}" in page_text(browse("owner").get("/segments/"))
    assert f"Request {request.pk}" not in page_text(browse("outsider").get("/segments/"))
    set_state("shop", request.pk, "Cancelled", caller=callers["owner"])
    assert mark not in page_text(browse("owner").get(page))


def test_requests_are_found_by_their_number_and_without_a_title(browse, cart, callers):
    request = add_changes("shop", "production", [OFF], caller=callers["owner"])
    for words in (f"{request.pk}", f"#{request.pk}", f"owner {request.pk}"):
        assert names(browse("owner"), words)["Change requests"] == ["Turn cart off"]
        assert "Change requests" not in names(browse("admin"), words)
    set_state("shop", request.pk, "In review", caller=callers["owner"])
    assert names(browse("admin"), f"{request.pk}")["Change requests"] == ["Turn cart off"]
    assert "Change requests" not in names(browse("outsider"), f"{request.pk}")
