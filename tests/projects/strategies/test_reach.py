"""The sentences about whom a strategy reaches, which name change requests."""

from typing import Any

import pytest

from projects.strategies.sentences import describe_new_reach, describe_reach

GERMANS = [{"contextName": "country", "operator": "IN", "values": ["DE"]}]
NORDIC = [{"contextName": "country", "operator": "IN", "values": ["NO", "SE"]}]


def strategy(share: int, **members: Any) -> dict[str, Any]:
    return {"name": "flexibleRollout", "parameters": {"rollout": f"{share}"}} | members


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (strategy(10), strategy(50), "Roll out cart to 50 % of users"),
        (strategy(10), strategy(100), "Roll out cart to everyone"),
        (strategy(50), strategy(5), "Reduce cart from 50 % to 5 % of users"),
        (strategy(100), strategy(5), "Reduce cart from everyone to 5 % of users"),
        (
            strategy(100),
            strategy(5, constraints=GERMANS),
            "Reduce cart from everyone to 5 % of users where country is DE",
        ),
        (
            strategy(5, constraints=GERMANS),
            strategy(50, constraints=GERMANS),
            "Roll out cart to 50 % of users where country is DE",
        ),
        (
            strategy(50, constraints=GERMANS),
            strategy(5, constraints=GERMANS),
            "Reduce cart from 50 % of users to 5 % of users where country is DE",
        ),
        (strategy(5, constraints=GERMANS), strategy(5), "Roll out cart to 5 % of users"),
        (
            strategy(5, constraints=GERMANS),
            strategy(50, constraints=NORDIC),
            "Change cart from 5 % of users where country is DE "
            "to 50 % of users where country is one of NO, SE",
        ),
        (
            strategy(5),
            strategy(50, segments=[7]),
            "Change cart from 5 % of users to 50 % of users where in segment vip",
        ),
        (
            strategy(5),
            {"name": "userWithId", "parameters": {"userIds": "1"}},
            "Change cart from 5 % of users to the users that it names",
        ),
        (strategy(5), strategy(5, disabled=True), "Disable a strategy of cart"),
        (strategy(5), strategy(5, title="Same people"), ""),
    ],
)
def test_a_change_is_named_by_whom_it_reaches(before: Any, after: Any, sentence: str) -> None:
    assert describe_new_reach("cart", before, after, {7: "vip"}) == sentence


def test_many_conditions_are_counted() -> None:
    three = [{"contextName": name, "operator": "IN", "values": ["a"]} for name in ("plan", "country", "city")]
    assert describe_reach(strategy(5, constraints=three), {}) == "5 % of users where 3 conditions hold"
