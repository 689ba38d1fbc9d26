"""Flags that can go: the proof by API and on the page, and the way from "can go" to archived."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from projects.models import Flag, FlagLastSeen, LifecycleStage
from tests.support.cast import make_project
from tests.support.flags import add_strategy, depend, make_flag, switch_on
from tests.support.for_each import for_each

pytestmark = pytest.mark.django_db
URL = "/api/admin/stale-flags"
CAN_GO = "/flags/?state=removable"


@pytest.fixture
def done(shop: Any) -> Flag:
    """A stale flag that everybody gets in production."""
    flag = make_flag("done", project=shop, stale=True)
    add_strategy(flag, "production", "default")
    switch_on(flag, "production")
    return flag


def get(api: Any, **query: Any) -> Any:
    return api["viewer"].get(URL, query).json()


def test_a_flag_comes_with_its_proof_and_what_to_keep(api: Any, done: Flag) -> None:
    make_flag("young", project=done.project)
    answer = get(api)
    assert answer["total"] == 1
    [flag] = answer["flags"]
    assert (flag["name"], flag["why"]) == ("done", ["marked as stale"])
    assert flag["keep"] == {"isEnabled": True, "variant": None}
    assert (flag["canLeaveTheCode"], flag["canBeArchived"]) == (True, True)
    assert 'Remove the feature flag "done" from the code.' in flag["task"]
    assert "Keep what runs while it is on" in flag["task"]


def test_what_not_everybody_gets_has_to_stay(api: Any, done: Flag) -> None:
    add_strategy(make_flag("part", project=done.project, stale=True), "production", "flexibleRollout",
                 parameters={"rollout": "50", "stickiness": "userId"})  # fmt: skip
    switch_on(Flag.objects.get(name="part"), "production")
    [flag] = [flag for flag in get(api)["flags"] if flag["name"] == "part"]
    assert (flag["keep"], flag["canLeaveTheCode"], flag["task"]) == (None, False, "")


def rolled_out(name: str, project: Any, **strategy: Any) -> Any:
    flag = make_flag(name, project=project, stale=True)
    values = {"parameters": {"rollout": "100", "stickiness": "default"}} | strategy
    add_strategy(flag, "production", "flexibleRollout", **values)
    switch_on(flag, "production")
    return flag


@for_each(("year", "can_go"), [("2025", True), ("2099", False)])
def test_a_date_that_was_reached_decides_nothing_any_more(
    year: str, can_go: bool, api: Any, shop: Any
) -> None:
    date = {"contextName": "currentTime", "operator": "DATE_AFTER", "value": f"{year}-01-01T00:00:00.000Z"}
    rolled_out("dated", shop, constraints=[date])
    [flag] = get(api)["flags"]
    assert flag["canLeaveTheCode"] is can_go
    assert flag["everybodyGets"]["production"] == ("on" if can_go else "differs by user")


def test_calls_without_the_field_of_its_stickiness_keep_a_flag(api: Any, shop: Any) -> None:
    rolled_out("by-user", shop, parameters={"rollout": "100", "stickiness": "userId"})
    rolled_out("by-anything", shop)
    flags = {flag["name"]: flag for flag in get(api)["flags"]}
    assert [flags[name]["canLeaveTheCode"] for name in ("by-user", "by-anything")] == [False, True]


def test_what_is_tried_outside_production_ends_with_the_flag_and_is_named(api: Any, shop: Any) -> None:
    flag = rolled_out("tried", shop)
    half = {"rollout": "50", "stickiness": "userId"}
    add_strategy(flag, "development", "flexibleRollout", parameters=half)
    switch_on(flag, "development")
    [answer] = get(api)["flags"]
    assert answer["everybodyGets"] == {"development": "differs by user", "production": "on"}
    assert answer["canLeaveTheCode"]
    assert "Everybody gets the same result in production (" in answer["task"]
    assert "What is tried in development ends with it: ask who does." in answer["task"]


def test_a_flag_that_others_need_has_to_stay(api: Any, done: Flag) -> None:
    depend(make_flag("child", project=done.project), done)
    [flag] = get(api)["flags"]
    assert (flag["dependents"], flag["canLeaveTheCode"], flag["canBeArchived"]) == (["child"], False, False)


def test_a_flag_that_applications_ask_for_cannot_be_archived_yet(api: Any, done: Flag) -> None:
    FlagLastSeen.objects.create(flag=done, environment="production", seen_at=timezone.now())
    [flag] = get(api)["flags"]
    assert (flag["canLeaveTheCode"], flag["canBeArchived"]) == (True, False)
    FlagLastSeen.objects.update(seen_at=timezone.now() - timedelta(days=8))
    assert get(api)["flags"][0]["canBeArchived"]


def test_pages_of_the_list_and_projects(api: Any, done: Flag) -> None:
    make_flag("old", project=done.project, stale=True)
    first, second = (get(api, limit=1, offset=offset)["flags"][0]["name"] for offset in (0, 1))
    assert {first, second} == {"done", "old"}
    assert get(api, project="shop")["total"] == 2
    assert api["outsider"].get(URL).json() == {"total": 0, "flags": []}
    for query in ({"project": "nothing"}, {"limit": 0}, {"limit": 51}, {"offset": -1}):
        assert api["viewer"].get(URL, query).status_code == 400


def test_from_can_go_to_archived(browse: Any, done: Flag) -> None:
    owner = browse("owner")
    page = owner.get("/stale-flags/?project=shop", follow=True)
    assert page.redirect_chain == [("/flags/?state=removable&project=shop", 302)]
    page = page.content.decode()
    assert "Complete, keep on" in page
    assert "Remove the feature flag" in page
    told = owner.post("/projects/shop/features/done/complete", follow=True).content.decode()
    assert "Marked done as completed. Remove it from the code, then archive it." in told
    stage = LifecycleStage.objects.get(flag=done, stage="completed")
    assert (stage.status, stage.status_value) == ("kept", None)
    assert "/flags/archive?name=done" in told
    owner.post("/projects/shop/features/done/complete", {"undo": "1"})
    assert not LifecycleStage.objects.filter(flag=done, stage="completed").exists()


def test_what_is_not_one_thing_is_not_completed(browse: Any, done: Flag) -> None:
    add_strategy(make_flag("part", project=done.project, stale=True), "production", "flexibleRollout",
                 parameters={"rollout": "50", "stickiness": "userId"})  # fmt: skip
    switch_on(Flag.objects.get(name="part"), "production")
    told = browse("owner").post("/projects/shop/features/part/complete", follow=True).content.decode()
    assert "Not everybody gets the same result from part in production." in told
    assert not LifecycleStage.objects.filter(stage="completed").exists()


def test_who_may_not_update_a_flag_sees_the_proof_only(browse: Any, done: Flag) -> None:
    viewer = browse("viewer")
    page = viewer.get(CAN_GO).content.decode()
    assert "done" in page
    assert "Complete, keep" not in page
    assert "Archive…" not in page
    assert viewer.post("/projects/shop/features/done/complete").status_code == 403
    assert browse("owner").post("/projects/shop/features/nothing/complete").status_code == 404


def test_every_row_has_something_to_press_and_many_go_at_once_over_projects(browse: Any, done: Flag) -> None:
    part = make_flag("part", project=done.project, stale=True)
    half = {"rollout": "50", "stickiness": "userId"}
    add_strategy(part, "production", "flexibleRollout", parameters=half)
    switch_on(part, "production")
    FlagLastSeen.objects.create(flag=part, environment="production", seen_at=timezone.now())
    parent = make_flag("parent", project=done.project, stale=True)
    depend(make_flag("child", project=done.project), parent)
    make_flag("other", project=make_project("docs"), stale=True)
    admin = browse("admin")
    page = admin.get(CAN_GO).content.decode()
    for pressed in ("Complete, keep on", "Finish the rollout", "Archive child first"):
        assert pressed in page
    actions = re.findall(r'<td data-label="Action">(.*?)</td>', page, re.DOTALL)
    assert len(actions) == 4
    assert all("<button" in action or "<a " in action for action in actions)
    names = ["done", "other"]
    question = admin.post("/flags/archive", {"name": names}, follow=True).content.decode()
    assert "Archive 2 flags" in question
    admin.post("/flags/archive", {"name": names, "known": "yes", "next": CAN_GO}, follow=True)
    assert set(Flag.objects.exclude(archived_at=None).values_list("name", flat=True)) == {"done", "other"}
    assert [row.flag.name for row in admin.get(CAN_GO).context["rows"]] == ["parent", "part"]
