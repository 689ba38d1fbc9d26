"""The pages of change requests: a refused form becomes a change of a draft, which others approve and apply."""

import csv
import io
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from flagadmin.core.audit.models import AuditEvent
from groups.models import Group, User
from projects.models import Flag, ProjectEnvironment, Segment, Strategy
from releases.models import Change, ChangeRequest, Schedule
from tests.support.change_requests import propose, sent, turn
from tests.support.flags import is_on
from tests.support.page_text import page_text
from tests.support.playground import live_flag
from tests.support.racing import together

SWITCH = "/projects/shop/features/cart/switch"
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cart(shop: Any) -> Flag:
    links = ProjectEnvironment.objects.filter(project="shop", environment="production")
    links.update(required_approvals=1)
    return live_flag("cart", strategies=[{"name": "flexibleRollout", "parameters": {"rollout": "10"}}])


OFF = {"environment": "production", "enabled": "off", "confirmed": "yes"}


def make_constraint(field: str, value: str) -> dict[str, Any]:
    return {
        "contextName": field,
        "operator": "IN",
        "values": [value],
        "inverted": False,
        "caseInsensitive": False,
    }


def test_a_refused_form_is_added_to_a_draft(browse, cart):
    owner = browse("owner")
    refused = owner.post(SWITCH, OFF)
    assert refused.status_code == 403
    assert "Add to change request" in refused.text
    assert "Save without a request" not in refused.text
    sent = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', refused.text))
    added = owner.post(SWITCH, {**sent, "add_to_request": "yes"})
    request = ChangeRequest.objects.get()
    assert (added.status_code, added.url) == (302, f"/projects/shop/change-requests/{request.pk}/")
    assert [(change.action, change.payload) for change in request.changes.all()] == [
        ("updateEnabled", {"enabled": False})
    ]
    assert is_on()
    page = page_text(owner.get(added.url))
    assert "Turn cart off" in page
    assert "generated users change" in page


def test_from_the_draft_to_production(browse, cart):
    owner, admin = browse("owner"), browse("admin")
    owner.post(SWITCH, OFF | {"add_to_request": "yes"})
    request = ChangeRequest.objects.get()
    url = f"/projects/shop/change-requests/{request.pk}/"
    assert admin.get(url).status_code == 404
    owner.post(f"{url}title", {"title": "No cart tonight"})
    owner.post(f"{url}state", {"state": "In review"})
    listed = page_text(admin.get("/projects/shop/change-requests/"))
    assert "No cart tonight" in listed
    admin.post(f"{url}comment", {"comment": "Fine with me"})
    for state in ("Approved", "Applied"):
        assert f'value="{state}"' in admin.get(url).text
        admin.post(f"{url}state", {"state": state})
    assert not is_on()
    shown = page_text(browse("viewer").get(url))
    assert "Fine with me" in shown
    assert "Applied" in shown


def test_ending_a_request_for_good_asks_first(browse, cart):
    owner, admin = browse("owner"), browse("admin")
    owner.post(SWITCH, OFF | {"add_to_request": "yes"})
    first = f"/projects/shop/change-requests/{ChangeRequest.objects.get().pk}/"
    assert f'href="{first}discard/"' in owner.get(first).text
    question = owner.get(f"{first}discard/")
    assert "The draft and its changes are deleted." in page_text(question)
    assert 'name="comment"' not in question.text  # events of drafts keep none
    assert owner.post(f"{first}discard/").url == "/projects/shop/change-requests/"
    assert not ChangeRequest.objects.exists()

    for verb, who, state in (("reject", admin, "Rejected"), ("cancel", owner, "Cancelled")):
        owner.post(SWITCH, OFF | {"add_to_request": "yes"})
        url = f"/projects/shop/change-requests/{ChangeRequest.objects.latest('pk').pk}/"
        owner.post(f"{url}state", {"state": "In review"})
        assert f'href="{url}{verb}/?proposal=' in who.get(url).text
        assert "cannot be opened again" in page_text(who.get(f"{url}{verb}/"))
        assert ChangeRequest.objects.latest("pk").state == "In review"
        assert who.post(f"{url}{verb}/", {"comment": "Not now"}).url == url
        assert ChangeRequest.objects.latest("pk").state == state
        assert "Not now" in page_text(who.get(url))
        assert f"in state {state}: you cannot {verb} it" in page_text(who.get(f"{url}{verb}/"))
    assert is_on()


def test_who_may_not_end_a_request_cannot(browse, cart):
    owner, viewer = browse("owner"), browse("viewer")
    owner.post(SWITCH, OFF | {"add_to_request": "yes"})
    url = f"/projects/shop/change-requests/{ChangeRequest.objects.get().pk}/"
    assert viewer.get(f"{url}discard/").status_code == 404
    owner.post(f"{url}state", {"state": "In review"})
    for verb in ("cancel", "reject", "discard"):
        assert viewer.get(f"{url}{verb}/").status_code == 403
        assert viewer.post(f"{url}{verb}/").status_code == 403
    assert owner.get(f"{url}discard/").status_code == 200
    assert "in state In review: you cannot discard it" in page_text(owner.get(f"{url}discard/"))
    assert browse("outsider").get(f"{url}cancel/").status_code == 404
    assert ChangeRequest.objects.get().state == "In review"


def test_it_is_the_turn_of_whoever_is_asked_and_can_approve_now(browse, api, cart, people):
    ProjectEnvironment.objects.filter(project="shop", environment="production").update(required_approvals=2)
    made = propose(api["owner"], turn(False))
    url, admin = f"/projects/shop/change-requests/{made['id']}/", browse("admin")
    request = ChangeRequest.objects.get()
    request.reviewers.set([people["admin"]])
    assert "Your turn" not in page_text(browse("owner").get(url))
    browse("owner").post(f"{url}state", {"state": "In review"})
    assert "admin Your turn" in page_text(admin.get(url))
    assert "admin Asked" in page_text(browse("viewer").get(url))
    admin.post(f"{url}state", {"state": "Approved"})
    shown = page_text(admin.get(url))
    assert re.search(r"admin\s*Approved", shown)
    assert "Your turn" not in shown
    assert "admin Asked" not in shown
    request.reviews.all().delete()
    for state in ("Applied", "Rejected", "Cancelled"):
        ChangeRequest.objects.update(state=state)
        assert "Your turn" not in page_text(admin.get(url))
    ChangeRequest.objects.update(state="Approved")  # by approvals that have lapsed since
    assert "admin Your turn" in page_text(admin.get(url))


def test_its_author_asks_people_for_a_review(browse, api, cart, people):
    made = sent(api["owner"], turn(False))
    url, owner = f"/projects/shop/change-requests/{made['id']}/", browse("owner")
    assert '<option value="admin">' in owner.get(url).text
    assert "Ask for a review" not in browse("viewer").get(url).text
    asked = owner.post(f"{url}reviewers", {"reviewer": "admin"}, follow=True)
    assert "Asked admin for a review." in page_text(asked)
    assert '<option value="admin">' not in asked.text
    assert [user.username for user in ChangeRequest.objects.get().reviewers.all()] == ["admin"]
    wrong = page_text(owner.post(f"{url}reviewers", {"reviewer": "viewer"}, follow=True))
    assert "viewer is nobody who may approve changes of production in project shop." in wrong
    assert browse("viewer").post(f"{url}reviewers", {"remove": people["admin"].pk}).status_code == 403
    User.objects.filter(pk=people["admin"].pk).update(root_role=None)
    body = {"reviewers": [people["admin"].pk]}
    one = f"/api/admin/projects/shop/change-requests/{made['id']}/approvers"
    assert api["owner"].put(one, body, format="json").status_code == 204
    owner.post(f"{url}reviewers", {"remove": people["admin"].pk})
    assert not ChangeRequest.objects.get().reviewers.exists()
    assert api["owner"].put(one, body, format="json").status_code == 400


def test_two_who_ask_at_the_same_time_both_ask(browse, api, cart, people):
    made = sent(api["owner"], turn(False))
    url, names = f"/projects/shop/change-requests/{made['id']}/reviewers", ["admin", "viewer"]
    User.objects.filter(username="viewer").update(root_role=people["admin"].root_role)
    browsers = {name: browse("owner") for name in names}
    together(*[lambda name=name: browsers[name].post(url, {"reviewer": name}) for name in names])
    asked = ChangeRequest.objects.get().reviewers.order_by("username")
    assert [user.username for user in asked] == names


def test_admins_may_save_without_a_request(browse, cart):
    admin = browse("admin")
    assert "Save without a request" in admin.post(SWITCH, OFF).text
    assert is_on()
    asked = admin.post(SWITCH, OFF | {"skip_change_request": "yes"})
    assert "Why without a request?" in asked.text
    assert is_on()
    admin.post(SWITCH, OFF | {"skip_change_request": "yes", "comment": "It burns"})
    assert not is_on()
    [event] = AuditEvent.objects.filter(type="change-request-skipped")
    assert event.comment == "It burns"


def test_a_form_of_strategies_becomes_its_change_and_what_no_request_can_do_says_so(browse, cart):
    refused = browse("admin").post(
        "/projects/shop/features/cart/move", {"project": "default", "confirmed": "yes"}
    )
    assert refused.status_code == 403
    assert "A change request cannot make this change" in refused.text
    assert "Add to change request" not in refused.text

    strategy = Strategy.objects.get(flag=cart, environment="production")
    owner = browse("owner")
    edit = f"/projects/shop/features/cart/strategies/edit?environmentId=production&strategyId={strategy.pk}"
    refused = owner.post(edit, {"do": "delete", "add_to_request": "yes"})
    assert refused.status_code == 302, refused.text
    actions = list(ChangeRequest.objects.get().changes.values_list("action", flat=True))
    assert actions == ["deleteStrategy", "updateEnabled"]


def test_the_policy_is_a_setting_of_the_project(browse, cart):
    owner = browse("owner")
    post = "/projects/shop/environments"
    owner.post(post, {"environment": "production", "do": "approvals", "approvals": "2"})
    link = ProjectEnvironment.objects.get(project="shop", environment="production")
    assert link.required_approvals == 2
    assert (
        '<option value="2" selected>Request with 2 approvals</option>'
        in owner.get("/projects/shop/settings/approvals/").text
    )
    owner.post(post, {"environment": "production", "do": "approvals", "approvals": ""})
    link.refresh_from_db()
    assert link.required_approvals is None
    owner.post(post, {"environment": "production", "do": "approvals", "approvals": "many"})
    link.refresh_from_db()
    assert link.required_approvals is None


VARIANT = {"weight": 1000, "weightType": "variable", "stickiness": "default"}


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"variants": [VARIANT | {"name": "blue"}]}, "none →to blue 100 %"),
        # As they will be stored, not as they were sent.
        (
            {"variants": [VARIANT | {"name": name} for name in ("blue", "green")]},
            "none →to blue 50 %, green 50 %",
        ),
        (
            {"constraints": [make_constraint("plan", "free")]},
            "plan is one of pro. →to plan is one of free.",
        ),
        ({"name": "patrons"}, "vips →to patrons"),
        (
            {"name": "patrons", "constraints": []},
            "vips: plan is one of pro. →to patrons: Includes every request.",
        ),
    ],
    ids=["variants", "weights", "conditions", "name", "name and conditions"],
)
def test_changed_variants_and_segments_are_shown_before_and_after(browse, cart, api, change, shown):
    segment = Segment.objects.create(name="vips", constraints=[make_constraint("plan", "pro")])
    proposed = (
        {"feature": "cart", "action": "patchVariant", "payload": change}
        if "variants" in change
        else {"action": "updateSegment", "payload": {"id": segment.pk} | change}
    )
    request = propose(api["owner"], proposed)
    assert shown in page_text(browse("owner").get(f"/projects/shop/change-requests/{request['id']}/"))


def test_the_list_names_requests_without_a_title_in_one_query(browse, cart):
    author = User.objects.get(username="owner")

    def count_queries():
        with CaptureQueriesContext(connection) as queries:
            page = browse("owner").get("/projects/shop/change-requests/")
        return len(queries), page_text(page).count("Turn cart on and 1 more")

    def make_requests(number):
        for _ in range(number):
            request = ChangeRequest.objects.create(
                project_id="shop", environment_id="production", state="In review", author=author
            )
            for _ in range(2):
                Change.objects.create(
                    request=request, feature="cart", action="updateEnabled", payload={"enabled": True}
                )

    make_requests(2)
    few, _ = count_queries()
    make_requests(10)
    assert count_queries() == (few, 12)


def test_the_list_says_how_many_users_change_and_what_each_request_waits_for(browse, cart, people):
    author = User.objects.get(username="owner")

    def make(state, *, asked=(), **values):
        row = ChangeRequest.objects.create(
            project_id="shop", environment_id="production", state=state, author=author, **values
        )
        row.reviewers.set([people[name] for name in asked])
        return row

    make("Draft")
    make("In review", impact={"changed": 25, "users": 200}, asked=["admin"])
    make("In review", required_approvals=2)
    make("Approved", required_approvals=0)
    stuck = make("In review", impact={"changed": 25, "users": 200})  # when it was sent; nobody now
    Change.objects.create(
        request=stuck, feature="cart", action="updateEnabled", payload={"enabled": True}, made_from=False
    )
    at = make("Scheduled")
    Schedule.objects.create(request=at, at=datetime(2100, 1, 2, 3, 4, tzinfo=UTC), by_name="owner")
    failed = make("Scheduled", author_name="owner")
    Schedule.objects.create(request=failed, at=datetime(2020, 1, 1, tzinfo=UTC), status="failed")
    make("Applied")
    lines = browse("owner").get("/projects/shop/change-requests/?sort=number&format=csv")
    rows = list(csv.DictReader(io.StringIO(lines.getvalue().decode())))
    assert [(row["Users"], row["Waits for"]) for row in rows] == [
        ("", "owner to send it"),
        ("12.5 %", "1 approval by admin"),
        ("", "2 approvals by any reviewer"),
        ("", "Somebody to apply it"),
        ("0 %", "owner to resolve a conflict"),
        ("", "2100-01-02T03:04:00+00:00"),
        ("", "owner to set another time"),
        ("", ""),
    ]
    group = Group.objects.create(name="Reviewers")
    ProjectEnvironment.objects.filter(project="shop").update(approver_groups=[group.pk])
    page = page_text(browse("owner").get("/projects/shop/change-requests/"))
    assert "2 approvals by members of Reviewers" in page
    assert "12.5 %" in page
    assert "2 Jan 2100, 03:04" in page


def test_a_request_is_named_by_its_first_change_and_shows_the_last_of_many_conditions(browse, cart, api):
    request = propose(api["owner"], turn(False))
    address = "/projects/shop/change-requests/"
    for page in (address, f"{address}{request['id']}/", "/"):
        assert "Turn cart off" in page_text(browse("owner").get(page))

    many = [make_constraint(f"field{number}", "a") for number in range(20)]
    segment = Segment.objects.create(name="vips", constraints=[*many, make_constraint("plan", "pro")])
    change = {"id": segment.pk, "constraints": [*many, make_constraint("plan", "free")]}
    request = propose(api["owner"], {"action": "updateSegment", "payload": change})
    page = page_text(browse("owner").get(f"/projects/shop/change-requests/{request['id']}/"))
    assert "plan is one of pro. →to" in page
    assert "plan is one of free." in page
