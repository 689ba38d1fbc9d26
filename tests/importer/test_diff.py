"""The textual description of the changes that an import makes to a flag."""

from typing import Any

import pytest

from importer.body.schemas import read_body
from importer.plan.build import plan_import
from importer.report import make_flag_reports
from projects.history.diff import diff, summary
from tests.support.import_bodies import body, strategy, switch

SEGMENTS = {1: "vip"}


def rollout(percent: str = "100", **fields: Any) -> dict[str, Any]:
    return {
        "name": "flexibleRollout",
        "title": None,
        "disabled": False,
        "parameters": {"rollout": percent, "stickiness": "default", "groupId": "one"},
        "constraints": [],
        "variants": [],
        "segments": [],
        "sortOrder": 0,
        **fields,
    }


def flag(**fields: Any) -> dict[str, Any]:
    return {
        "type": "release",
        "description": None,
        "stale": False,
        "impressionData": False,
        "archived": False,
        "enabled": True,
        "variants": [],
        "strategies": [],
        "tags": [],
        "links": [],
        "parents": [],
        **fields,
    }


def country(*values: str) -> dict[str, Any]:
    return {"contextName": "country", "operator": "IN", "values": list(values)}


CASES = {
    "rollout": (
        flag(strategies=[rollout("100")]),
        flag(strategies=[rollout("40")]),
        ["rollout: 100 % → 40 %"],
    ),
    "a constraint's values": (
        flag(strategies=[rollout(constraints=[country("US", "DE")])]),
        flag(strategies=[rollout(constraints=[country("US", "DE", "NO")])]),
        ["condition country: is one of US, DE → is one of US, DE, NO"],
    ),
    "one of many values": (
        flag(strategies=[rollout(constraints=[country(*"ABCDEFG")])]),
        flag(strategies=[rollout(constraints=[country(*"ABCDEFH")])]),
        [
            "condition country: is one of A, B, C, D, E, … (7 in all)"
            " → is one of A, B, C, D, E, … (7 in all) (added H; removed G)"
        ],
    ),
    "a strategy more": (
        flag(strategies=[rollout("10")]),
        flag(strategies=[rollout("10"), rollout("20", sortOrder=1, segments=[1])]),
        ["strategy: + On for 20 % of users, by userId (or sessionId), where in segment vip"],
    ),
    "a strategy less": (
        flag(strategies=[rollout("10"), rollout("20", sortOrder=1)]),
        flag(strategies=[rollout("20", sortOrder=1)]),
        ["strategy: − On for 10 % of users, by userId (or sessionId)"],
    ),
    "another type that reads the same": (
        flag(strategies=[rollout(name="default", parameters={})]),
        flag(strategies=[rollout()]),
        ["strategy type: default → flexibleRollout"],
    ),
    "another type, with variants": (
        flag(strategies=[rollout(name="default", parameters={})]),
        flag(strategies=[rollout(variants=[{"name": "blue", "weight": 1000}])]),
        ["strategy: − On for everyone", "strategy: + On for everyone (variants blue 100 %)"],
    ),
    "another order": (
        flag(strategies=[rollout("10"), rollout("20", sortOrder=1)]),
        flag(strategies=[rollout("20"), rollout("10", sortOrder=1)]),
        [
            "order of strategies: On for 10 % of users, by userId (or sessionId); On for 20 % of users, by userId (or sessionId)"
            " → On for 20 % of users, by userId (or sessionId); On for 10 % of users, by userId (or sessionId)"
        ],
    ),
    "the flag itself": (
        flag(),
        flag(type="experiment", description="new", stale=True, enabled=False),
        ["description: none → new", "type: release → experiment", "stale: no → yes", "switch: on → off"],
    ),
    "what hangs on it": (
        flag(tags=[["simple", "old"]], parents=[{"feature": "two", "enabled": True, "variants": []}]),
        flag(
            tags=[["simple", "new"]],
            parents=[{"feature": "two", "enabled": False, "variants": []}],
            links=[{"url": "https://example.com", "title": "Ticket"}],
        ),
        [
            "tag: − simple:old",
            "tag: + simple:new",
            "depends on: − two on",
            "depends on: + two off",
            "link: + Ticket (https://example.com)",
        ],
    ),
    "variants": (
        flag(),
        flag(variants=[{"name": "a", "weight": 335, "payload": {"type": "string", "value": "x"}}]),
        ["variants: none → a 33.5 % (string x)"],
    ),
    "nothing": (flag(strategies=[rollout()]), flag(strategies=[rollout()]), []),
}


@pytest.mark.parametrize(("before", "after", "expected"), CASES.values(), ids=CASES)
def test_in_words(before: Any, after: Any, expected: list[str]) -> None:
    assert [str(change) for change in diff(before, after, SEGMENTS)] == expected


def test_a_new_flag_in_a_line() -> None:
    assert (
        summary(flag(strategies=[rollout("10")]), SEGMENTS)
        == "release, on, strategy: On for 10 % of users, by userId (or sessionId)"
    )


@pytest.mark.django_db
def test_every_change_of_a_plan_has_words(callers: Any, api: Any) -> None:
    first = body("one", featureStrategies=[strategy("one", parameters={"rollout": "100"})])
    assert api["admin"].post("/api/admin/features-batch/import", first).status_code == 200
    then = body(
        "one",
        featureStrategies=[strategy("one", parameters={"rollout": "40"})],
        featureEnvironments=[switch("one")],
    )
    [report] = make_flag_reports(plan_import(read_body(then), caller=callers("admin")))
    assert report.document() == {
        "name": "one",
        "action": "change",
        "changes": [
            {"part": "switch", "before": "off", "after": "on"},
            {"part": "rollout", "before": "100 %", "after": "40 %"},
        ],
    }
