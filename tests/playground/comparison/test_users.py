"""Generated users: what a flag's share depends on, and what it does not."""

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest

from playground.comparison import rules
from playground.comparison.users import FlagUsers, GeneratedUsers, NameValues
from projects.definitions import Definitions
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 23, tzinfo=UTC)
COMPARE = "/api/admin/playground/compare"
PRODUCTION = {"environment": "production"}


def is_in(field: str, *values: str) -> dict[str, Any]:
    return {"contextName": field, "operator": "IN", "values": list(values)}


def on_in(*countries: str) -> dict[str, Any]:
    return {"name": "default", "constraints": [is_in("country", *countries)]}


def flag(name: str, *conditions: Any, **members: Any) -> Any:
    strategies = [{"name": "default", "parameters": {}, "constraints": list(conditions), "segments": []}]
    return {"name": name, "strategies": strategies, "variants": [], "dependencies": []} | members


def countries(*states: list[Any], of: str) -> list[str | None]:
    named = NameValues(Definitions(documents, {}) for documents in states).of(of)
    return list(FlagUsers(GeneratedUsers(now=NOW, count=1_200), named).texts("country"))


def share_of(api: Any, body: dict[str, Any], name: str) -> list[Any]:
    contexts = {"synthetic": 500}
    answer = api["viewer"].post(COMPARE, body | {"contexts": contexts}).json()
    [found] = [flag for flag in answer["flags"] if flag["name"] == name]
    return [found["counts"], found["before"], found["after"]]


def test_a_flag_has_the_same_share_whatever_it_is_compared_with(api: Any, shop: Any) -> None:
    for name in ("a", "b", "f"):
        names = {"a": ["NO", "SE"], "b": ["DK", "FI", "IS"], "f": ["DE"]}[name]
        live_flag(name, strategies=[on_in(*names)])
    body = {"from": {"environment": "development"}, "to": PRODUCTION}
    alone = share_of(api, body | {"flag": "f"}, "f")

    assert share_of(api, body, "f") == alone
    assert alone[0]["offToOn"] == 167  # a third: German, of another country, of none


def test_what_parents_name_belongs_to_the_flag() -> None:
    parent, other = flag("parent", is_in("country", "NO")), flag("other", is_in("country", "SE"))
    child = flag("child", dependencies=[{"feature": "parent"}])
    assert set(countries([child, other, parent], of="child")) == {"NO", "other", None}


def test_what_an_edit_names_leaves_other_shares_as_they_are() -> None:
    before, after = [flag("f", is_in("country", "DE"))], [flag("f", is_in("country", "DE", "NO", "SE"))]
    stored, edited = countries(before, before, of="f"), countries(before, after, of="f")
    assert [text == "DE" for text in stored] == [text == "DE" for text in edited]
    assert stored.count("DE") == 400
    assert edited.count("NO") > 200 < edited.count("SE")


def test_a_condition_that_strategies_and_states_repeat_is_read_once(monkeypatch: Any) -> None:
    """A flag may have 30 strategies with 30 constraints each, of which each may take milliseconds."""
    read: list[str] = []

    def find_matching_text(pattern: str) -> str:
        read.append(pattern)
        return pattern

    monkeypatch.setattr(rules, "find_matching_text", find_matching_text)
    long, other = ({"contextName": "region", "operator": "REGEX", "value": "(a)" * n} for n in (600, 599))
    strategy = {"name": "default", "parameters": {}, "constraints": [long] * 29 + [other], "segments": [7]}
    full = flag("f", strategies=[strategy] * 30)
    segment: Any = {"id": 7, "name": "s", "constraints": [long] * 30}
    states = [Definitions([deepcopy(full)], {7: deepcopy(segment)}) for _ in range(2)]
    named = NameValues(states).of("f")

    assert named.first == {"region": ("(a)" * 600, "", "~", "(a)" * 599)}
    assert not named.added
    assert read == ["(a)" * 600, "(a)" * 599]


def test_users_of_every_other_kind_of_contexts_are_beside_them(api: Any, shop: Any) -> None:
    live_flag("f", strategies=[on_in("DE")])
    contexts = {"synthetic": 60, "explicit": [{"userId": "7", "properties": {"country": "DE"}}]}
    body = {"from": {"environment": "development"}, "to": PRODUCTION, "contexts": contexts}
    answer = api["viewer"].post(COMPARE, body).json()
    assert (answer["contexts"], answer["people"]) == (61, 21)
    assert answer["examples"][0]["context"] == {"userId": "7", "country": "DE"}
