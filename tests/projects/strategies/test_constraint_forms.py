"""Constraint values in forms: what is shown is what is saved, and unchanged values stay as stored."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from projects.models import StrategyType
from projects.strategies.constraint_forms import format_values, read_values
from tests.support.editor_form import Form
from tests.support.flags import add_strategy, make_flag
from tests.support.scenery import make_vocabulary

FLAG = "/projects/shop/features/cart/"
ODD = [
    "US, DE",
    "  blank first",
    "line\u2028separator",
    'quote " inside',
    '"quoted"',
    "two\nlines",
    "a\rb",
    "é,ü",
    "",
]


@pytest.mark.parametrize(
    ("typed", "values"),
    [
        ("US, DE", ["US", "DE"]),
        ("US\r\nDE\r\n\r\n", ["US", "DE"]),
        (" US ,\u00a0DE\t", ["US", "DE"]),
        ('"US, DE", NO', ["US, DE", "NO"]),
        ('"  x"', ["  x"]),
        ('5" disk, a"b', ['5" disk', 'a"b']),
        ('"open, x', ['"open', "x"]),
        ('"not \\d JSON"', ['"not \\d JSON"']),
        ("a\u2028b", ["a\u2028b"]),
        ('"\\ud83d\\ude00"', ["😀"]),
        ('"\\ud800", NO', ['"\\ud800"', "NO"]),  # half a character, which nothing can store, and NUL
        ('"\\u0000"', ['"\\u0000"']),
        (",,\n ,", []),
    ],
)
def test_typed_values(typed, values):
    assert read_values(typed) == values


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.text(
            st.one_of(
                st.sampled_from(' ,"\\\n\r\t\u2028\u00a0'),
                st.characters(codec="utf-8", exclude_characters="\0"),
            )
        )
    )
)
def test_every_list_of_values_can_be_typed(values):
    typed = format_values(values)

    assert read_values(typed) == values
    assert read_values(typed.replace("\n", "\r\n")) == values  # as a browser sends it


@pytest.fixture
def cart(shop):
    make_vocabulary()
    return make_flag("cart")


@pytest.mark.parametrize(
    "constraint",
    [
        {"contextName": "city", "operator": "IN", "values": ODD},
        {"contextName": "city", "operator": "IN", "values": ["b", "a", "b"]},
        {"contextName": "country", "operator": "NOT_IN", "values": ["SE", " DE", "NO"]},
        {"contextName": "city", "operator": "NUM_GT", "values": [], "value": " 5 "},
        {"contextName": "city", "operator": "SEMVER_GT", "values": [], "value": "\u20281.2.3"},
        {"contextName": "city", "operator": "REGEX", "values": [], "value": "^a\nb "},
        {
            "contextName": "currentTime",
            "operator": "DATE_AFTER",
            "values": [],
            "value": "9999-12-31T23:00:00-05:00",
        },
        {
            "contextName": "currentTime",
            "operator": "DATE_AFTER",
            "values": [],
            "value": "0001-01-01T00:00:00+14:00",
        },
        {"contextName": "country", "operator": "SEMVER_EQ", "values": [], "value": " 1.0.0"},
    ],
    ids=lambda constraint: f"{constraint['contextName']} {constraint['operator']}",
)
def test_an_edit_of_something_else_leaves_values_as_they_are_stored(browse, cart, constraint):
    strategy = add_strategy(
        cart, "production", "flexibleRollout",
        parameters={"rollout": "25", "stickiness": "userId", "groupId": "cart"}, constraints=[constraint],
    )  # fmt: skip
    address = f"{FLAG}strategies/edit?environmentId=production&strategyId={strategy.pk}"
    sent = Form(browse("member").get(address).text).sent

    page = browse("member").post(address, sent | {"title": "New", "do": "refresh"})

    again = Form(page.text).sent
    assert again["title"] == ["New"]
    assert {name: again[name] for name in again if name.startswith("c-0-")} == {
        name: sent[name] for name in sent if name.startswith("c-0-")
    }
    values = constraint["values"] or [constraint["value"]]
    assert json.loads(sent["c-0-was"][0]) == values


def test_stored_values_survive_saving_a_title(browse, cart):
    StrategyType.objects.create(name="userWithId", parameters=[{"name": "userIds", "type": "list"}])
    values = [value for value in ODD if value]
    strategy = add_strategy(
        cart, "production", "userWithId", parameters={"userIds": "7, 8,9"},
        constraints=[{"contextName": "city", "operator": "IN", "values": values}],
    )  # fmt: skip
    address = f"{FLAG}strategies/edit?environmentId=production&strategyId={strategy.pk}"
    sent = Form(browse("member").get(address).text).sent

    answer = browse("member").post(address, sent | {"title": "New", "confirmed": "yes"})

    assert answer.status_code == 302
    strategy.refresh_from_db()
    assert strategy.title == "New"
    assert strategy.constraints[0]["values"] == values
    assert strategy.parameters["userIds"] == "7, 8,9"


def test_values_between_commas_are_several_unless_quoted(browse, cart):
    address = f"{FLAG}strategies/new?environmentId=production"
    sent = {
        "name": "default",
        "c": "0",
        "c-0-field": "city",
        "c-0-operator": "IN",
        "c-0-values": "Oslo, Bergen",
    }

    page = browse("member").post(address, sent | {"do": "refresh"})
    browse("member").post(address, sent | {"confirmed": "yes"})

    assert "city is one of Oslo, Bergen" in page.text
    assert cart.strategies.get().constraints[0]["values"] == ["Oslo", "Bergen"]

    page = browse("member").post(address, sent | {"c-0-values": '"Paris, Texas", Oslo', "do": "refresh"})

    assert "city is one of &quot;Paris, Texas&quot;, Oslo" in page.text
