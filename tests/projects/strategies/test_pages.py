"""…/strategies/edit and …/strategies/new: the form, what it saves, and what it refuses."""

import re
from html import unescape

import pytest

from projects.models import Strategy
from tests.support.flags import add_strategy, make_flag, switch_on
from tests.support.for_each import for_each
from tests.support.page_text import page_text
from tests.support.scenery import make_vocabulary

FLAG = "/projects/shop/features/cart/"
ROLLOUT = {"rollout": "25", "stickiness": "userId", "groupId": "cart"}


@pytest.fixture
def cart(shop):
    make_vocabulary()
    return make_flag("cart")


@pytest.fixture
def strategy(cart):
    return add_strategy(
        cart,
        "production",
        "flexibleRollout",
        title="A quarter",
        parameters=ROLLOUT | {"extra": "kept"},
        constraints=[
            {
                "contextName": "currentTime",
                "operator": "DATE_AFTER",
                "values": [],
                "value": "2030-12-01T00:00:00Z",
            }
        ],
    )


def address(strategy):
    return f"{FLAG}strategies/edit?environmentId=production&strategyId={strategy.pk}"


def form(*constraints, **fields):
    """What a browser sends: a rollout, and these constraints as {field, operator, values, value, …}; confirmed."""
    sent = {
        "confirmed": "yes",
        "p-rollout": "25",
        "p-stickiness": "userId",
        "p-groupId": "cart",
        "c": [],
    } | fields
    for number, constraint in enumerate(constraints):
        sent["c"].append(str(number))
        sent |= {f"c-{number}-{key}": value for key, value in constraint.items()}
    return sent


def test_the_form_shows_what_is_stored(browse, strategy):
    page = browse("member").get(address(strategy))

    assert 'value="25"' in page.text
    assert 'type="datetime-local" step="1"' in page.text
    assert 'value="2030-12-01T00:00:00"' in page.text
    assert (
        "On for 25 % of users, by userId, where currentTime is a time after 2030-12-01T00:00:00Z."
        in page_text(page)
    )


def test_saving_changes_what_the_form_has_and_keeps_the_rest(browse, strategy):
    time = {"field": "currentTime", "operator": "DATE_AFTER", "value": "2030-12-01T00:00:00"}
    time["was"] = '["2030-12-01T00:00:00Z"]'

    answer = browse("member").post(address(strategy), form(time, **{"p-rollout": "60", "title": "More"}))

    assert answer["Location"] == FLAG
    strategy.refresh_from_db()
    assert strategy.parameters == ROLLOUT | {"rollout": "60", "extra": "kept"}
    assert strategy.title == "More"
    assert strategy.constraints[0]["value"] == "2030-12-01T00:00:00Z"


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        (
            {"field": "email", "operator": "STR_ENDS_WITH", "values": "@a.no\r\n\r\n@b.no ", "case": "on"},
            {"values": ["@a.no", "@b.no"], "caseInsensitive": True},
        ),
        ({"field": "plan", "operator": "IN", "choice": ["free", "pro"]}, {"values": ["free", "pro"]}),
        (
            {"field": "age", "operator": "NUM_GTE", "value": "18", "inverted": "on"},
            {"value": "18", "inverted": True},
        ),
        ({"field": "appVersion", "operator": "SEMVER_GT", "value": "5.0.0"}, {"value": "5.0.0"}),
        (
            {"field": "day", "operator": "DATE_BEFORE", "value": "2026-11-21T09:30"},
            {"value": "2026-11-21T09:30:00.000Z"},
        ),
        (
            {"field": "x", "operator": "REGEX", "value": "^a+", "inverted": "on"},
            {"value": "^a+", "inverted": False},
        ),
        ({"field": "ip", "operator": "IN_CIDR", "values": "10.0.0.0/8"}, {"values": ["10.0.0.0/8"]}),
    ],
    ids=lambda value: value.get("operator", ""),
)
def test_each_operator_is_stored_as_the_api_would(browse, strategy, sent, stored):
    browse("member").post(address(strategy), form(sent))

    strategy.refresh_from_db()
    [constraint] = strategy.constraints
    assert (constraint["contextName"], constraint["operator"]) == (sent["field"], sent["operator"])
    assert constraint | stored == constraint


@for_each(
    ("operator", "field", "part"),
    [
        ("IN", "plan", 'type="checkbox" name="c-0-choice" value="enterprise"'),
        ("IN", "email", "<textarea"),
        ("STR_CONTAINS", "plan", "<textarea"),
        ("NUM_GT", "age", 'type="number"'),
        ("DATE_AFTER", "currentTime", 'type="datetime-local"'),
        ("SEMVER_EQ", "appVersion", 'placeholder="1.2.3"'),
        ("IN_CIDR", "remoteAddress", "10.0.0.0/8, 2001:db8::/32"),
    ],
)
def test_each_operator_has_its_input(browse, strategy, operator, field, part):
    page = browse("member").post(
        address(strategy), form({"field": field, "operator": operator}, do="refresh")
    )

    assert page.status_code == 200
    assert part in page.text


@for_each(
    ("sent", "problem"),
    [
        ({"field": "appVersion", "operator": "SEMVER_GT", "value": "5"}, "5 is not a version like 1.2.3"),
        ({"field": "plan", "operator": "IN", "values": "gold"}, "gold is not a legal value of plan"),
        ({"field": "", "operator": "IN", "values": "x"}, "a context field name is required"),
        ({"field": "x", "operator": "IN"}, "IN needs at least one value"),
        ({"field": "x", "operator": "NOSUCH", "values": "x"}, "NOSUCH is not an operator"),
    ],
)
def test_what_is_wrong_with_a_condition_stands_in_its_row(browse, strategy, sent, problem):
    before = strategy.constraints

    refused = browse("member").post(address(strategy), form(sent))

    assert refused.status_code == 400
    assert problem in page_text(refused)
    assert problem in unescape(refused.text.split('id="c-0-error"')[1].split("</ul>")[0])
    strategy.refresh_from_db()
    assert strategy.constraints == before


def test_rows_are_added_and_removed_without_saving(browse, strategy):
    browser, plan = browse("member"), {"field": "plan", "operator": "IN", "values": "free"}

    added = browser.post(address(strategy), form(plan, **{"condition-field": "country", "do": "refresh"}))
    removed = browser.post(address(strategy), form(plan, do="remove-constraint-0"))

    assert 'name="c-1-field" value="country"' in added.text
    assert 'name="c-0-field"' not in removed.text
    strategy.refresh_from_db()
    assert strategy.constraints[0]["contextName"] == "currentTime"


def test_variants_have_shares_and_payloads(browse, strategy):
    rows = {
        "v": ["0", "1", "2"],
        "v-0-name": "blue", "v-0-fixed": "on", "v-0-percent": "20.5",
        "v-1-name": "green", "v-1-payload-type": "json", "v-1-payload": '{"a": 1}',
        "v-2-name": "red",
        "variants-stickiness": "sessionId",
    }  # fmt: skip

    browse("member").post(address(strategy), form(**rows))

    strategy.refresh_from_db()
    shares = {variant["name"]: (variant["weight"], variant["weightType"]) for variant in strategy.variants}
    assert shares == {"blue": (205, "fix"), "green": (398, "variable"), "red": (397, "variable")}
    assert strategy.variants[1]["payload"] == {"type": "json", "value": '{"a": 1}'}
    assert {variant["stickiness"] for variant in strategy.variants} == {"sessionId"}


def test_segments_are_chosen(browse, strategy):
    from projects.models import Segment

    segment = Segment.objects.get(name="beta-testers")
    browse("member").post(address(strategy), form(segment=str(segment.pk)))

    assert list(strategy.segments.all()) == [segment]


def test_before_deleting_it_is_said_what_becomes_of_the_flag(browse, cart, strategy):
    browser = browse("member")
    assert "cart has no other in use in production; it is off there." in page_text(
        browser.get(address(strategy))
    )

    switch_on(cart, "production")
    assert "It is the last active strategy: cart will be off in production." in page_text(
        browser.get(address(strategy))
    )
    told = browser.post(address(strategy), {"do": "delete"}, follow=True)
    assert "It was the last active strategy, so cart is now off there." in page_text(told)


def test_with_others_left_these_decide(browse, cart, strategy):
    add_strategy(cart, "production")
    assert "The remaining strategies apply to cart in production." in page_text(
        browse("member").get(address(strategy))
    )


def test_saving_leads_back_to_the_playground_and_nowhere_else(browse, strategy):
    playground = "/playground/flag/cart/?environment=production&context.userId=42"
    browser = browse("member")

    opened = browser.get(address(strategy), headers={"Referer": f"http://testserver{playground}"})
    saved = browser.post(address(strategy), form(next=playground))
    elsewhere = browser.post(address(strategy), form(next="https://evil.example/playground/"))

    assert f'name="next" value="{playground.replace("&", "&amp;")}"' in opened.text
    assert saved["Location"] == playground
    assert elsewhere["Location"] == FLAG


def test_a_reader_sees_it_and_is_told_what_is_missing(browse, strategy):
    reader = browse("reader")

    page = reader.get(address(strategy))

    assert 'You need the "Edit strategies" permission in Shop (production).' in page_text(page)
    assert "Save strategy</button> <noscript>" not in page_text(page)
    assert re.search(r'<fieldset id="body"[^>]* disabled>', page.text)
    assert reader.post(address(strategy), form()).status_code == 403
    assert reader.post(address(strategy), {"do": "delete"}).status_code == 403
    assert reader.get(f"{FLAG}strategies/new?environmentId=production").status_code == 403


@for_each(
    ("query", "status"),
    [
        ("environmentId=nosuch&strategyId=x", 404),
        ("environmentId=production", 404),
        ("environmentId=production&strategyId=x", 404),
        ("", 400),
    ],
)
def test_what_is_not_there(browse, strategy, query, status):
    assert browse("member").get(f"{FLAG}strategies/edit?{query}").status_code == status


def test_adding_a_strategy_of_each_type(browse, cart):
    new = f"{FLAG}strategies/new?environmentId=production"
    browser = browse("member")

    assert "On for everyone." in page_text(browser.get(new))
    answer = browser.post(new, form(**{"name": "flexibleRollout", "p-rollout": "5"}))

    assert answer["Location"] == FLAG
    assert Strategy.objects.get(flag=cart).parameters["rollout"] == "5"

    page = browser.post(new, {"name": "remoteAddress", "was-name": "flexibleRollout", "do": "refresh"})
    browser.post(
        new,
        form(**{"name": "remoteAddress", "was-name": "remoteAddress", "p-IPs": "10.0.0.1\r\n10.2.0.0/16"}),
    )

    assert 'name="p-IPs"' in page.text
    assert 'name="p-rollout"' not in page.text
    assert Strategy.objects.get(flag=cart, name="remoteAddress").parameters == {"IPs": "10.0.0.1,10.2.0.0/16"}


def test_a_value_that_sdks_cannot_read_is_saved_when_confirmed(browse, strategy):
    odd = {"field": "currentTime", "operator": "DATE_AFTER", "value": "2022-01-29"}
    variant = {"v": "0", "v-0-name": "a", "v-0-payload-type": "number", "v-0-payload": "x"}
    asked = browse("member").post(address(strategy), form(odd, **variant))
    assert asked.status_code == 400
    assert "2022-01-29T00:00:00.000Z was probably meant" in page_text(asked)
    assert 'name="keep_unreadable"' in asked.text
    assert (
        browse("member").post(address(strategy), form(odd, keep_unreadable="yes", **variant)).status_code
        == 302
    )
    strategy.refresh_from_db()
    assert strategy.constraints[0]["value"] == "2022-01-29"
    assert strategy.variants[0]["payload"]["value"] == "x"


def narrowed(**more):
    country = {"field": "plan", "operator": "IN", "values": "free"}
    return form(country, **{"keep-rest": "yes", "switch": "enabled", "enabled": "on"} | more)


def test_the_present_rule_stays_for_whom_new_conditions_leave_out(browse, strategy):
    answer = browse("member").post(address(strategy), narrowed(**{"p-rollout": "50"}))

    assert answer.status_code == 302
    some, others = Strategy.objects.filter(flag=strategy.flag).order_by("sort_order", "created_at")
    assert (some.pk, some.parameters["rollout"], some.constraints[0]["values"]) == (
        strategy.pk,
        "50",
        ["free"],
    )
    assert (others.title, others.parameters, others.constraints) == (
        strategy.title, strategy.parameters, strategy.constraints
    )  # fmt: skip


def test_keeping_the_present_rule_is_offered_for_other_conditions_only(browse, strategy):
    refreshed = browse("member").post(address(strategy), narrowed(do="refresh")).text
    assert 'name="keep-rest" value="yes" checked' in refreshed
    same = {"field": "currentTime", "operator": "DATE_AFTER", "value": "2030-12-01T00:00:00"}
    wider = form(same, **{"p-rollout": "50", "do": "refresh", "c-0-was": '["2030-12-01T00:00:00Z"]'})
    assert "keep-rest" not in browse("member").post(address(strategy), wider).text


def test_an_error_in_one_input_hides_none_in_another(browse, strategy):
    sent = form({"field": "plan", "operator": "IN", "values": "gold"}, **{"p-rollout": "150"})
    for do in ("refresh", "save"):
        page = browse("member").post(address(strategy), sent | {"do": do}).text
        assert "use a whole number from 0 to 100" in page.split('id="p-rollout-error"')[1][:200]
        assert "not a legal value" in page.split('id="c-0-error"')[1][:200]
