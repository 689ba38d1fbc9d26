"""Flags with random stickiness: the page shows the share of calls, which is the same at every reload."""

import csv
import io

import pytest
from django.utils import timezone

from playground.engine.chance import find_state_over_calls
from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.pages.tables import read_results
from playground.snapshot_cache import load_snapshot
from tests.support.flags import add_strategy, depend, make_flag, switch_on


def drawn(percent):
    return {"name": "gradualRolloutRandom", "parameters": {"percentage": str(percent)}}


def by_session(percent):
    return {
        "name": "flexibleRollout",
        "parameters": {"rollout": str(percent), "stickiness": "default", "groupId": "g"},
    }


NOBODY = {"constraints": [{"contextName": "plan", "operator": "IN", "values": ["pro"]}]}


def make(name, *strategies):
    flag = make_flag(name)
    for strategy in strategies:
        add_strategy(flag, environment="production", **strategy)
    switch_on(flag, environment="production")
    return flag


def rows(browser, **question):
    answer = browser.get("/playground/", {"environment": "production", "format": "csv", **question})
    lines = csv.reader(io.StringIO(b"".join(answer.streaming_content).decode()))
    return {name: result for name, _, result, *_ in lines}


@pytest.fixture
def viewer(browse, shop):
    return browse("viewer")


@pytest.mark.parametrize(
    ("strategies", "result"),
    [
        ([drawn(30)], "≈ 30 % of calls"),
        ([by_session(25)], "≈ 25 % of calls"),
        ([drawn(50), drawn(50)], "≈ 75 % of calls"),
        ([drawn(100)], "On"),
        ([drawn(0)], "Off"),
        ([drawn(30), {"name": "default", "parameters": {}}], "On"),
        ([drawn(30) | NOBODY], "Off"),
        ([drawn(30), {"name": "hostGroup", "parameters": {}}], "Can't tell"),
    ],
)
def test_the_share_of_calls_is_the_result(viewer, strategies, result):
    make("cart", *strategies)

    assert rows(viewer)["cart"] == result


def test_an_identifier_settles_it(viewer):
    make("cart", by_session(25))

    assert rows(viewer, **{"context.userId": "42"})["cart"] in ("On", "Off")


def test_a_child_is_on_as_often_as_its_parent(viewer):
    parent, child, other = make("parent", drawn(30)), make("child", drawn(50)), make("other")
    depend(child, parent)
    depend(other, parent, enabled=False)

    assert rows(viewer)["child"] == "≈ 15 % of calls"


def test_the_page_counts_and_filters_them(viewer):
    make("cart", drawn(30))
    make("search", {"name": "default", "parameters": {}})
    page = viewer.get("/playground/", {"environment": "production"}).text

    assert '<span class="pill random">≈ 30 % of calls</span>' in page
    assert "on some calls" in page
    assert list(rows(viewer, result="random"))[1:] == ["cart"]


def test_a_link_to_a_variant_that_nobody_gets_is_no_error(viewer):
    make("cart", drawn(30))
    answer = viewer.get("/playground/", {"environment": "production", "variant": "blue"})

    assert answer.status_code == 200
    assert "No flags match these filters." in answer.text


def test_the_api_still_answers_with_one_draw(viewer, api):
    make("cart", drawn(100))
    body = {"environment": "production", "context": {}}
    [flag] = api["viewer"].post("/api/admin/playground", body).json()["features"]

    assert flag["isEnabled"] is True


def test_the_short_way_to_results_agrees_with_the_long_one(shop):
    parent = make("parent", drawn(30))
    for number, strategies in enumerate(
        ([drawn(30)], [by_session(25)], [drawn(0)], [{"name": "hostGroup", "parameters": {}}])
    ):
        depend(make(f"child-{number}", *strategies), parent)
    make("plain", {"name": "default", "parameters": {}})
    make_flag("off")
    compiled = load_snapshot(None, "production").snapshot

    for context in (Context({}), Context({"userId": "42"}), Context({"sessionId": "7"})):
        evaluation = evaluate(compiled, context, now=timezone.now(), random=lambda: 0.4)
        long_way = [find_state_over_calls(evaluation, *pair)[0].value for pair in evaluation.pairs()]
        assert [result for result, _, _, _ in read_results(evaluation)] == long_way
