"""Release templates in the console: milestones and their strategies are changed, and nothing of them is lost."""

from typing import Any

import pytest

from groups.access import Caller
from projects.models import ContextField, Segment
from releases.models import Milestone, ReleaseTemplate
from releases.templates.actions import create_template
from releases.templates.pages import find_descents
from tests.support.editor_form import Form
from tests.support.for_each import for_each
from tests.support.page_text import page_text

pytestmark = pytest.mark.django_db
WINDOW = {"zone": "Europe/Oslo", "days": [2, 3], "from": "10:30", "to": "15:00"}


@pytest.fixture
def template(shop: Any) -> ReleaseTemplate:
    """With everything that a strategy can have, and a transition that no form offers."""
    ContextField.objects.get_or_create(name="country")
    segment = Segment.objects.create(name="nordic", constraints=[])
    everything = {
        "name": "flexibleRollout",
        "title": "North",
        "parameters": {"rollout": "25"},
        "constraints": [
            {
                "contextName": "country",
                "operator": "NOT_IN",
                "values": ["NO", "SE"],
                "inverted": True,
                "caseInsensitive": False,
            }
        ],
        "segments": [segment.pk],
        "variants": [
            {
                "name": "blue",
                "weight": 600,
                "weightType": "fix",
                "stickiness": "userId",
                "payload": {"type": "json", "value": '{"a": 1}'},
            },
            {"name": "red", "weight": 400, "weightType": "variable", "stickiness": "userId"},
        ],
    }
    users = {"name": "remoteAddress", "parameters": {"IPs": "10.0.0.7,10.0.0.8"}}
    transition = {"intervalMinutes": 90, "window": WINDOW}
    milestones = [
        {"name": "Some", "strategies": [everything, users], "transitionCondition": transition},
        {"name": "All", "strategies": [{"name": "default"}]},
    ]
    return create_template(
        {"name": "Careful", "milestones": milestones}, project_id="shop", caller=Caller.system()
    )


def url(template: ReleaseTemplate, *parts: str) -> str:
    return "/".join([f"/release-templates/{template.pk}", *parts])


def milestones() -> list[Milestone]:
    return list(Milestone.objects.order_by("place"))


def strategy_url(template: ReleaseTemplate, place: int = 0, number: int = 0) -> str:
    milestone = milestones()[place]
    return url(template, "milestones", milestone.pk, "strategies", milestone.strategies[number]["id"])


def save(browser: Any, address: str, **changes: str) -> Any:
    return browser.post(address, Form(browser.get(address).text).sent | {"do": "save"} | changes)


def test_the_page_says_all_that_strategies_have_and_what_is_wrong_with_changes(browse, template):
    page = page_text(browse("owner").get(url(template, "")))
    assert "On for 25 %" in page
    assert "nordic" in page
    assert "North" in page
    assert "blue" in page
    assert "after 90 minutes, Tue, Wed, 10:30–15:00 Europe/Oslo" in page

    answer = save(browse("owner"), strategy_url(template), **{"p-rollout": "300"})
    assert answer.status_code == 400
    assert "use a whole number from 0 to 100" in page_text(answer)
    assert milestones()[0].strategies[0]["parameters"] == {"rollout": "25"}

    owner, before, name = browse("owner"), milestones(), "x" * 256
    for path in ("details", "milestones/new", f"milestones/{before[0].pk}"):
        answer = owner.post(url(template, path), {"name": name, "interval": "keep"}, follow=True)
        assert "name: must have at most 255 characters, not 256" in page_text(answer)
    assert owner.post("/release-templates/new/", {"name": name, "rollouts": "5, 100"}).status_code == 400
    template.refresh_from_db()
    assert (template.name, [row.name for row in milestones()]) == ("Careful", [row.name for row in before])
    assert ReleaseTemplate.objects.count() == 1


@for_each("number", [0, 1])
def test_saving_a_strategy_as_it_is_changes_nothing(browse, template, number):
    before = [milestone.strategies for milestone in milestones()]
    saved = save(browse("owner"), strategy_url(template, number=number))
    assert (saved.status_code, saved.url) == (302, url(template, ""))
    assert [milestone.strategies for milestone in milestones()] == before


def test_a_strategy_is_changed_and_keeps_the_rest(browse, template):
    before = milestones()[0].strategies
    save(browse("owner"), strategy_url(template), **{"p-rollout": "30", "title": "Further north"})
    changed = milestones()[0].strategies
    assert changed[0] == before[0] | {"title": "Further north", "parameters": {"rollout": "30"}}
    assert changed[1] == before[1]
    assert milestones()[0].transition == {"intervalMinutes": 90, "window": WINDOW}


def test_strategies_are_added_and_removed_but_not_overwritten(browse, template):
    owner, address = browse("owner"), strategy_url(template)
    mine = Form(owner.get(address).text).sent | {"do": "save", "p-rollout": "30"}
    save(browse("admin"), address, **{"p-rollout": "40"})
    answer = owner.post(address, mine)
    assert answer.status_code == 409
    assert milestones()[0].strategies[0]["parameters"] == {"rollout": "40"}

    owner, second = browse("owner"), milestones()[1]
    add = url(template, "milestones", second.pk, "strategies", "new")
    assert "that of the project" in owner.get(add).text
    save(owner, add, **{"p-rollout": "5", "p-stickiness": "userId"})
    added = milestones()[1].strategies
    assert [strategy["name"] for strategy in added] == ["default", "flexibleRollout"]
    assert added[1]["parameters"] == {"rollout": "5", "stickiness": "userId"}
    owner.post(strategy_url(template, 1, 0), {"do": "delete"})
    assert [strategy["name"] for strategy in milestones()[1].strategies] == ["flexibleRollout"]


def test_milestones_are_added_changed_and_removed(browse, template):
    owner, before = browse("owner"), milestones()[0]
    owner.post(url(template, "milestones", "new"), {"name": "Later"})
    assert [milestone.name for milestone in milestones()] == ["Some", "All", "Later"]
    owner.post(url(template, "milestones", before.pk), {"name": "Few", "interval": "keep", "window": "keep"})
    changed = milestones()[0]
    assert (changed.name, changed.transition, changed.strategies) == (
        "Few",
        before.transition,
        before.strategies,
    )
    owner.post(url(template, "milestones", before.pk), {"name": "Few", "interval": "60", "window": "keep"})
    assert milestones()[0].transition == {"intervalMinutes": 60, "window": WINDOW}
    owner.post(url(template, "milestones", before.pk), {"name": "Few", "interval": "keep", "window": ""})
    assert milestones()[0].transition == {"intervalMinutes": 60}
    owner.post(url(template, "milestones", before.pk), {"name": "Few", "interval": ""})
    assert milestones()[0].transition is None
    removal = url(template, "milestones", f"{before.pk}/remove/")
    question = page_text(owner.get(removal))
    assert "Remove milestone Few?" in question
    assert len(milestones()) == 3
    owner.post(removal)
    assert [milestone.name for milestone in milestones()] == ["All", "Later"]
    owner.post(url(template, "details"), {"name": "Slow", "description": "Take care"})
    template.refresh_from_db()
    assert (template.name, template.description) == ("Slow", "Take care")


def test_who_may_only_read_changes_nothing(browse, template):
    reader, first = browse("reader"), milestones()[0]
    assert "Add strategy" not in page_text(reader.get(url(template, "")))
    assert reader.get(strategy_url(template)).status_code == 200
    assert reader.post(strategy_url(template), {"do": "save"}).status_code == 403
    assert reader.get(url(template, "milestones", f"{first.pk}/remove/")).status_code == 403
    assert reader.post(url(template, "milestones", f"{first.pk}/remove/")).status_code == 403
    assert reader.post(url(template, "milestones", "new"), {"name": "x"}).status_code == 403
    assert reader.post(url(template, "details"), {"name": "x"}).status_code == 403
    assert browse("outsider").get(strategy_url(template)).status_code == 404
    assert browse("owner").get(strategy_url(template) + "x").status_code == 404


def test_a_template_is_deleted_after_a_question_and_archived_without(browse, template):
    owner, page = browse("owner"), url(template, "")
    assert "Delete…" in page_text(owner.get(page))
    question = page_text(owner.get(url(template, "remove")))
    assert "release template Careful with 2 milestones" in question
    for path in ("remove", "archive"):
        assert browse("reader").post(url(template, path)).status_code == 403
    owner.post(url(template, "archive"))
    template.refresh_from_db()
    assert template.archived_at
    again = owner.post(url(template, "archive"), follow=True)
    assert "archived already" in page_text(again)
    assert owner.post(url(template, "remove")).url == "/release-templates/"
    assert not ReleaseTemplate.objects.exists()


def test_the_time_zone_is_that_of_the_window_and_an_unknown_one_is_refused_as_it_was_filled_in(
    browse, template
):
    owner = browse("owner")
    assert 'name="zone" value="Europe/Oslo"' in owner.get(url(template, "")).text
    page = url(template, "milestones", str(milestones()[0].pk))
    form = {"name": "Some", "interval": "keep", "window": "1-4", "zone": "Mars"}
    refused = owner.post(page, form, follow=True)
    assert "Enter a time zone such as Europe/Oslo, not Mars." in page_text(refused)
    assert milestones()[0].transition["window"] == WINDOW

    owner.cookies["zone"] = "undefined"
    address = "/release-templates/new/"
    assert 'name="zone" value="UTC"' in owner.get(address).text
    form = {"name": "New", "rollouts": "5, 100", "interval": "60", "window": "1-4", "zone": "Mars" * 100}
    refused = owner.post(address, form)
    assert refused.status_code == 400
    assert f"not {'Mars' * 15}Mar…." in page_text(refused)
    for chosen in (
        '<option value="60" selected>',
        '<option value="1-4" selected>',
        'name="zone" value="Mars',
    ):
        assert chosen in refused.text


def test_steps_to_fewer_users_are_pointed_out(browse: Any, shop: Any) -> None:
    admin, new = browse("admin"), {"interval": "1440", "window": ""}
    for rollouts, warns in (("50, 25, 100", True), ("5, 25, 100", False)):
        made = admin.post("/release-templates/new/", {**new, "name": rollouts, "rollouts": rollouts})
        assert made.status_code == 302, page_text(made)
        text = page_text(admin.get(made.url))
        assert ("25 % follows 50 %, but is for fewer users" in text) == warns
        assert ("100 % follows" in text) is False


def find_named_descents(*strategies: Any) -> list[tuple[str, str]]:
    milestones = [{"name": f"{place}", "strategies": [each]} for place, each in enumerate(strategies)]
    values = {"name": f"{ReleaseTemplate.objects.count()}", "milestones": milestones}
    made = create_template(values, project_id=None, caller=Caller.system())
    return list(find_descents(made.milestones.all()))


def rollout(**more: Any) -> dict[str, Any]:
    return {"name": "flexibleRollout", "parameters": {"rollout": "50"}} | more


def test_only_rollouts_to_shares_of_the_same_users_are_compared(shop: Any) -> None:
    everyone = rollout(parameters={})
    assert find_named_descents(rollout(), everyone) == []
    assert find_named_descents(everyone, rollout()) == [("0", "1")]

    ContextField.objects.get_or_create(name="country")
    segment = Segment.objects.create(name="nordic", constraints=[])
    norway = {"contextName": "country", "operator": "IN", "values": ["NO"]}
    fewer = {"rollout": "25"}
    by_session = fewer | {"stickiness": "sessionId"}
    assert find_named_descents(rollout(), rollout(parameters=fewer)) == [("0", "1")]
    for other in ({"segments": [segment.pk]}, {"constraints": [norway]}, {"parameters": by_session}):
        assert find_named_descents(rollout(), rollout(parameters=fewer) | other) == []
    norwegians = {"constraints": [norway]}
    assert find_named_descents(rollout(**norwegians), rollout(parameters=fewer, **norwegians)) == [("0", "1")]
