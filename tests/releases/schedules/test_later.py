"""Forms that are saved later, without any policy: a request that its author's own permissions approve."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from projects.models import Flag, FlagEnvironment, ProjectEnvironment, Segment, Strategy
from releases.models import ChangeRequest, Schedule
from releases.schedules.due import apply_due
from tests.support.flags import is_on
from tests.support.page_text import page_text
from tests.support.playground import live_flag

SWITCH = "/projects/shop/features/cart/switch"
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cart(shop: Any) -> Flag:
    return live_flag("cart", strategies=[{"name": "flexibleRollout", "parameters": {"rollout": "10"}}])


def in_hours(hours: float) -> str:
    return f"{timezone.now() + timedelta(hours=hours):%Y-%m-%dT%H:%M:%S}Z"


def off(hours: float = 2) -> dict[str, str]:
    return {
        "environment": "production",
        "enabled": "off",
        "confirmed": "yes",
        "when": "at",
        "at": in_hours(hours),
        "comment": "Campaign ends",
    }


def let_it_be_due() -> None:
    Schedule.objects.update(at=timezone.now() - timedelta(minutes=1))
    apply_due()


def test_a_form_is_saved_at_its_time(browse, cart):
    answer = browse("owner").post(SWITCH, off())
    request = ChangeRequest.objects.get()
    assert (answer.status_code, answer.url) == (302, f"/projects/shop/change-requests/{request.pk}/")
    assert (request.state, request.title) == ("Scheduled", "Turn cart off")
    assert request.comments.get().text == "Campaign ends"
    assert is_on()
    page = page_text(browse("viewer").get(answer.url))
    assert "It will be applied on" in page
    let_it_be_due()
    assert not is_on()


def test_the_draft_of_its_author_stays(api, browse, cart):
    drafts = "/api/admin/projects/shop/environments/production/change-requests"
    change = {"feature": "cart", "action": "updateEnabled", "payload": {"enabled": False}}
    assert api["owner"].post(drafts, change, format="json").status_code == 200
    browse("owner").post(SWITCH, off())
    assert sorted(ChangeRequest.objects.values_list("state", flat=True)) == ["Draft", "Scheduled"]


def test_a_strategy_of_a_flag_that_is_off_is_saved_later_too(browse, cart):
    FlagEnvironment.objects.update(enabled=False)
    strategy = Strategy.objects.get(flag=cart, environment="production")
    edit = f"/projects/shop/features/cart/strategies/edit?environmentId=production&strategyId={strategy.pk}"
    form = {
        "name": "flexibleRollout",
        "enabled": "on",
        "switch": "enabled",
        "p-rollout": "50",
        "p-stickiness": "default",
        "p-groupId": "cart",
    }
    assert "At a time" in browse("owner").get(edit).text
    browse("owner").post(edit, {"do": "save", **form, **off()})
    [change] = ChangeRequest.objects.get().changes.all()
    assert change.action == "updateStrategy"
    assert change.payload["parameters"]["rollout"] == "50"
    assert Strategy.objects.get().parameters["rollout"] == "10"


def test_flags_of_several_projects_are_a_request_each(browse, cart):
    live_flag("docs-search", project="default", strategies=[{"name": "default"}])
    names = {"name": ["cart", "docs-search"], "environment": "production", "enabled": "off"}
    answer = browse("admin").post(
        "/flags/switch", {**names, "confirmed": "yes", "when": "at", "at": in_hours(2)}
    )
    assert answer.status_code == 302
    requests = ChangeRequest.objects.order_by("project_id").values_list("project_id", "state")
    assert list(requests) == [("default", "Scheduled"), ("shop", "Scheduled")]


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("", "must be a time"),
        ("soon", "must be a time"),
        ("9999-12-31T23:00:00-05:00", "must be a time"),
        (in_hours(-1), "must be at least a minute from now"),
    ],
    ids=["none", "word", "beyond all years", "passed"],
)
def test_no_time_ahead_is_asked_for_again(browse, cart, at, message):
    answer = browse("owner").post(SWITCH, off() | {"at": at})
    assert answer.status_code == 400
    assert message in page_text(answer)
    assert 'name="when" value="at"' in answer.text
    assert not ChangeRequest.objects.exists()
    assert is_on()


def test_what_changes_nothing_later_is_not_saved_now(browse, cart):
    flag = "/projects/shop/features/cart/edit"
    form = {"description": "New", "type": "release", "when": "at", "at": in_hours(2)}
    answer = browse("owner").post(flag, form)
    assert "Nothing was saved" in page_text(answer)
    assert Flag.objects.get().description != "New"


def later(segment: Segment) -> dict[str, str]:
    condition = {"c": "0", "c-0-field": "country", "c-0-operator": "IN", "c-0-values": "NO"}
    return {
        "name": segment.name,
        "when": "at",
        "at": in_hours(2),
        "do": "save",
        "confirmed": "yes",
        **condition,
    }


def test_a_segment_of_all_projects_is_changed_later_by_one_request(browse, cart):
    segment = Segment.objects.create(name="everybody", constraints=[])
    docs = live_flag("docs-search", project="default", strategies=[{"name": "default"}])
    for flag in (cart, docs):
        for strategy in Strategy.objects.filter(flag=flag):
            strategy.segments.add(segment)
    browse("admin").post(f"/segments/{segment.pk}/", later(segment))
    request = ChangeRequest.objects.get()
    assert (request.state, request.environment_id, request.title) == (
        "Scheduled",
        "production",
        "Change segment everybody",
    )
    segment.refresh_from_db()
    assert segment.constraints == []
    let_it_be_due()
    segment.refresh_from_db()
    assert segment.constraints[0]["values"] == ["NO"]


def test_a_segment_that_no_flag_uses_is_not_changed_later(browse, cart):
    segment = Segment.objects.create(name="everybody", constraints=[])
    answer = browse("admin").post(f"/segments/{segment.pk}/", later(segment))
    assert "Only what flags use can be changed later" in page_text(answer)
    segment.refresh_from_db()
    assert segment.constraints == []


@pytest.mark.parametrize("who", ["viewer", "outsider"])
def test_nobody_saves_later_what_they_may_not_save(browse, cart, who):
    browse(who).post(SWITCH, off())
    assert not ChangeRequest.objects.exists()


def test_where_requests_are_needed_it_waits_for_review(browse, cart):
    ProjectEnvironment.objects.filter(project="shop", environment="production").update(required_approvals=1)
    page = browse("owner").get(f"{SWITCH}?environment=production&enabled=off")
    assert "Send for review" in page.text
    assert "At a time" not in page.text
    answer = browse("owner").post(SWITCH, {**off(), "when": "now", "send_for_review": "yes"})
    request = ChangeRequest.objects.get()
    assert answer.url == f"/projects/shop/change-requests/{request.pk}/"
    assert (request.state, request.title) == ("In review", "Turn cart off")
    assert is_on()
