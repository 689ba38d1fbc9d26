"""Changing the type in the strategy form keeps equivalent parameters, and shows no errors before input."""

import pytest

from projects.models import StrategyType
from tests.support.editor_form import Form
from tests.support.flags import make_flag
from tests.support.for_each import for_each

NEW = "/projects/shop/features/cart/strategies/new?environmentId=production"
ROLLOUT = {"p-rollout": "35", "p-stickiness": "sessionId", "p-groupId": "checkout"}


@pytest.fixture(autouse=True)
def cart(shop):
    parameters = [{"name": "percentage", "type": "percentage"}, {"name": "groupId", "type": "string"}]
    StrategyType.objects.create(name="gradualRolloutUserId", parameters=parameters)
    return make_flag("cart")


def change(browse, name, sent):
    """The page and its form after the type is changed to ``name``."""
    page = browse("admin").post(NEW, sent | {"name": name, "do": "refresh", "left": "name"})
    return page, Form(page.text).sent


def test_rollout_group_and_stickiness_stay_between_types_and_no_problem_is_shown_before_typing(browse):
    _, form = change(browse, "gradualRolloutUserId", ROLLOUT | {"was-name": "flexibleRollout"})

    assert form["p-percentage"] == ["35"]
    assert form["p-groupId"] == ["checkout"]

    sent = {"was-name": "gradualRolloutUserId", "p-percentage": "40", "p-groupId": "checkout"}

    _, form = change(browse, "flexibleRollout", sent)

    assert form["p-rollout"] == ["40"]
    assert form["p-groupId"] == ["checkout"]
    assert form["p-stickiness"] == ["userId"]

    _, between = change(browse, "default", ROLLOUT | {"was-name": "flexibleRollout"})

    _, form = change(browse, "flexibleRollout", between)

    assert {name: [form[name]] for name in ROLLOUT} == {name: [[value]] for name, value in ROLLOUT.items()}

    page, _ = change(browse, "gradualRolloutUserId", {"was-name": "default"})

    assert "aria-invalid" not in page.text


@for_each(("left", "shown"), [("title", False), ("title\np-rollout", True), (None, True)])
def test_a_problem_is_shown_when_its_input_was_left(browse, left, shown):
    sent = ROLLOUT | {
        "name": "flexibleRollout",
        "was-name": "flexibleRollout",
        "p-rollout": "150",
        "do": "refresh",
    }

    page = browse("admin").post(NEW, sent | ({} if left is None else {"left": left}))

    assert ('aria-invalid="true"' in page.text) is shown


def test_a_new_condition_is_not_wrong_before_its_values_are_left(browse):
    sent = {"name": "default", "c": "0", "c-0-field": "city", "c-0-operator": "IN", "do": "refresh"}

    before = browse("admin").post(NEW, sent | {"left": "c-0-field"})
    after = browse("admin").post(NEW, sent | {"left": "c-0-field\nc-0-values"})

    assert "aria-invalid" not in before.text
    assert "IN needs at least one value</li>" in after.text
