"""POST /api/admin/playground/compare: request, response, and what the caller may read."""

from typing import Any

import pytest
from django.utils import timezone

from playground.comparison.who_changes import Budget
from playground.snapshot_cache import cache
from projects.models import Dependency, Flag, FlagEnvironment, Segment, Strategy, StrategyType
from tests.support.cast import make_project
from tests.support.flags import add_strategy, depend
from tests.support.for_each import for_each
from tests.support.playground import live_flag
from tests.support.records import refused

URL = "/api/admin/playground/compare"
PRODUCTION = {"environment": "production"}
UNCHANGED = dict.fromkeys(("offToOn", "onToOff", "variant", "payload", "share", "unknown", "unchanged"), 0)
EXPLICIT = {"explicit": [{"userId": "42"}, {"userId": "7"}]}


def rollout(percent: int) -> dict[str, Any]:
    parameters = {"rollout": str(percent), "stickiness": "userId", "groupId": "dark-theme"}
    return {"name": "flexibleRollout", "parameters": parameters}


@pytest.fixture
def dark(shop):
    return live_flag("dark-theme", strategies=[rollout(50)])


def drafted(**draft: Any) -> dict[str, Any]:
    return {"environment": "production", "draft": draft}


def ask(api: Any, to: Any, who: str = "viewer", **members: Any) -> Any:
    body = {"from": PRODUCTION, "to": to, "contexts": EXPLICIT} | members
    return api[who].post(URL, body)


def answered(response: Any) -> Any:
    assert response.status_code == 200, response.content
    return response.json()


def test_the_answer(api, dark):
    to = drafted(flag="dark-theme", strategies=[rollout(75)])
    counts = UNCHANGED | {"offToOn": 1, "unchanged": 1}
    assert answered(ask(api, to, flag="dark-theme")) == {
        "contexts": 2,
        "people": 1,
        "counts": counts,
        "flags": [
            {
                "name": "dark-theme",
                "counts": counts,
                "before": [
                    {"isEnabled": False, "variant": None, "payload": None, "contexts": 1},
                    {"isEnabled": True, "variant": None, "payload": None, "contexts": 1},
                ],
                "after": [{"isEnabled": True, "variant": None, "payload": None, "contexts": 2}],
            }
        ],
        "examples": [
            {
                "flag": "dark-theme",
                "context": {"userId": "42"},
                "change": "offToOn",
                "before": {
                    "results": [{"isEnabled": False, "variant": None, "payload": None, "share": 1}],
                    "reason": "userId 42 is in bucket 53 and the rollout stops at 50 %",
                },
                "after": {
                    "results": [{"isEnabled": True, "variant": None, "payload": None, "share": 1}],
                    "reason": "userId 42 is in bucket 53, 75 % rollout",
                },
            }
        ],
        "expectations": {"broken": [], "met": []},
    }


def test_nothing_is_stored(api, dark):
    answered(ask(api, drafted(flag="dark-theme", archived=True, enabled=False, strategies=[], variants=[])))
    dark.refresh_from_db()
    assert dark.archived_at is None
    assert Strategy.objects.get(flag=dark).parameters["rollout"] == "50"
    assert FlagEnvironment.objects.get(flag=dark, environment="production").enabled is True


def test_another_environment(api, dark):
    found = answered(ask(api, {"environment": "development"}))
    assert found["counts"]["onToOff"] == 1
    assert found["examples"][0]["after"]["reason"] == "Switched off in development"


def test_all_flags_of_a_project_and_only_those_that_change(api, dark):
    live_flag("gift-cards")
    found = answered(ask(api, drafted(flag="dark-theme", enabled=False), projects=["shop"]))
    assert [flag["name"] for flag in found["flags"]] == ["dark-theme"]
    assert found["counts"] == UNCHANGED | {"onToOff": 1, "unchanged": 3}


def test_children_change_with_their_parent(api, dark):
    child = live_flag("child")
    Dependency.objects.create(flag=child, parent=dark)
    found = answered(ask(api, drafted(flag="dark-theme", enabled=False), flag="child"))
    assert found["counts"]["onToOff"] == 1
    assert "dark-theme" in found["examples"][0]["after"]["reason"]


def test_an_archived_flag_is_gone(api, dark):
    [example] = answered(ask(api, drafted(flag="dark-theme", archived=True), flag="dark-theme"))["examples"]
    assert example["after"]["reason"] == "The flag does not exist, or is archived"


def test_a_segment_changes_the_flags_that_use_it(api, dark):
    segment = Segment.objects.create(name="vip", constraints=[users("42")])
    flag = live_flag("lounge", strategies=())
    add_strategy(flag, "production", segments=(segment,))
    to = drafted(segments=[{"id": segment.pk, "constraints": [users("7")]}])
    found = answered(ask(api, to))
    assert [(flag["name"], flag["counts"]["offToOn"]) for flag in found["flags"]] == [("lounge", 1)]
    assert [example["context"]["userId"] for example in found["examples"]] == ["7", "42"]


def users(*ids: str) -> dict[str, Any]:
    return {"contextName": "userId", "operator": "IN", "values": list(ids)}


def test_chance_is_a_share(api, dark):
    random = {"name": "flexibleRollout", "parameters": {"rollout": "25", "stickiness": "random"}}
    found = answered(ask(api, drafted(flag="dark-theme", strategies=[random]), flag="dark-theme"))
    assert found["counts"]["share"] == 2
    assert found["flags"][0]["after"] == [
        {"isEnabled": False, "variant": None, "payload": None, "contexts": 1.5},
        {"isEnabled": True, "variant": None, "payload": None, "contexts": 0.5},
    ]
    assert found["examples"][0]["after"]["results"][1]["share"] == 0.25


def test_what_only_an_sdk_can_tell(api, dark):
    StrategyType.objects.create(name="moon")
    to = drafted(flag="dark-theme", strategies=[{"name": "moon"}])
    assert answered(ask(api, to, flag="dark-theme"))["counts"]["unknown"] == 2


def test_made_contexts(api, dark):
    to = drafted(flag="dark-theme", strategies=[rollout(75) | {"constraints": [users("a", "b")]}])
    contexts = {"generated": True, "synthetic": 500, "explicit": [{}]}
    first, second = (answered(ask(api, to, flag="dark-theme", contexts=contexts)) for _ in range(2))
    assert first == second
    assert first["contexts"] > 501
    other = answered(ask(api, to, flag="dark-theme", contexts=contexts | {"seed": 1}))
    assert other["contexts"] == first["contexts"]
    assert other["examples"] != first["examples"]


def test_examples_are_limited(api, dark):
    to = drafted(flag="dark-theme", enabled=False)
    found = answered(ask(api, to, contexts={"synthetic": 100}, limit=3))
    assert len(found["examples"]) == 3
    assert answered(ask(api, to, limit=0))["examples"] == []


def test_parents_that_saving_would_refuse(api, dark):
    """A parent that has a parent, and one in a project that the caller may not read, which does not exist for them."""
    depend(live_flag("middle"), live_flag("top"))
    live_flag("hidden", project=make_project("docs").pk)
    for parent, message in (
        ("middle", "middle itself depends on top; a parent cannot have a parent"),
        ("hidden", "flag hidden not found"),
    ):
        to = drafted(flag="dark-theme", dependencies=[{"feature": parent}])
        record = refused(ask(api, to, "member"), 400, "ValidationError")
        assert record["message"] == f"to.draft.dependencies[0]: {message}"


@for_each(
    ("members", "path"),
    [
        ({"to": {"environment": "nowhere"}}, "to.environment"),
        ({"from": {"environment": "nowhere"}}, "from.environment"),
        ({"to": drafted(flag="nowhere")}, "to.draft.flag"),
        ({"to": drafted(enabled=True)}, "to.draft.flag"),
        ({"to": drafted(flag="dark-theme", strategies=[{"name": "nosuch"}])}, "to.draft.strategies[0].name"),
        (
            {"to": drafted(flag="dark-theme", strategies=[{"name": "default", "constraints": [users("a") | {"operator": "X"}]}])},
            "to.draft.strategies[0].constraints[0].operator",
        ),
        ({"to": drafted(flag="dark-theme", variants=[{"name": "a", "weight": 5000}])}, "to.draft.variants[0].weight"),
        ({"to": drafted(flag="dark-theme", dependencies=[{"feature": "nowhere"}])}, "to.draft.dependencies[0]"),
        ({"to": drafted(flag="dark-theme", dependencies=[{"feature": "dark-theme"}])}, "to.draft.dependencies[0]"),
        ({"contexts": {}}, "contexts"),
        ({"contexts": {"explicit": 5}}, "contexts.explicit"),
        ({"contexts": {"explicit": [{}, {"userId": []}]}}, "contexts.explicit[1].userId"),
        ({"contexts": {"explicit": ["x"]}}, "contexts.explicit[0]"),
        ({"contexts": {"explicit": [{"currentTime": "soon"}]}}, "contexts.explicit[0].currentTime"),
        ({"flags": "search-v2"}, "flags"),
        ({"contexts": {"syntetic": 10}}, "contexts.syntetic"),
        ({"to": {"environment": "production", "time": "now"}}, "to.time"),
        ({"to": drafted(flag="dark-theme", enable=False)}, "to.draft.enable"),
        ({"to": drafted(segments=[{"id": 1, "constraints": [], "name": "x"}])}, "to.draft.segments[0].name"),
        ({"contexts": {"synthetic": 10_001}}, "contexts.synthetic"),
        ({"flag": "nowhere"}, "flag"),
        ({"limit": -1}, "limit"),
    ],
)  # fmt: skip
def test_errors_name_the_place(api, dark, members, path):
    response = ask(api, **({"to": drafted(flag="dark-theme", enabled=False)} | members))
    assert path in [detail["path"] for detail in refused(response, 400, "ValidationError")["details"]]


def test_as_many_contexts_as_are_advertised(api, dark):
    """Of 30 properties each: 8 MB."""
    properties = {f"property-number-{number}": "value" for number in range(30)}
    contexts = [{"userId": str(number), "properties": properties} for number in range(10_000)]
    answer = answered(ask(api, drafted(flag="dark-theme", enabled=False), contexts={"explicit": contexts}))
    assert answer["contexts"] == 10_000
    contexts.append({})
    record = refused(ask(api, PRODUCTION, contexts={"explicit": contexts}), 400, "ValidationError")
    assert record["details"] == [
        {"path": "contexts.explicit", "message": "must have at most 10,000 items, not 10,001"}
    ]


def test_more_than_a_body_may_have(api, dark, settings):
    padded = [{"userId": "7", "properties": {"a": "x" * 100_000}}] * (settings.COMPARE_BODY_LIMIT // 100_000)
    record = refused(ask(api, PRODUCTION, contexts={"explicit": padded}), 413, "PayloadTooLargeError")
    assert record["message"] == "The body is larger than the 16 MB accepted here."
    values = [{"properties": dict.fromkeys(map(str, range(101)), "")}] * 10_000
    record = refused(ask(api, PRODUCTION, contexts={"explicit": values}), 400, "ValidationError")
    assert record["message"] == "The body must have at most 1,000,000 values."


def test_too_many_results(api, shop):
    now = timezone.now()
    Flag.objects.bulk_create(Flag(name=f"f{n}", project=shop, created_at=now) for n in range(101))
    response = ask(api, {"environment": "development"}, contexts={"synthetic": 10_000})
    assert "101 flags × 10,000 users" in refused(response, 400, "ValidationError")["message"]


def test_too_many_flags_are_not_compiled(api, dark, monkeypatch):
    monkeypatch.setattr("playground.comparison.request.BUDGET", Budget(results=1))
    cache.clear()
    body = {"from": {"environment": "production"}, "to": {"environment": "development"}}
    contexts = {"contexts": {"explicit": [{"userId": "1"}, {"userId": "2"}]}}
    record = refused(api["viewer"].post(URL, body | contexts), 400, "ValidationError")
    assert "Too many: 1 flag × 2 users" in record["message"]
    assert not cache.entries()


def test_too_long(api, dark, monkeypatch):
    monkeypatch.setattr("playground.comparison.request.BUDGET", Budget(seconds=-1))
    record = refused(ask(api, PRODUCTION), 400, "ValidationError")
    assert "0 of 1 flags were compared" in record["message"]
