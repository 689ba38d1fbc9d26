"""Drafts of the API: what one predicts is what saving the same members stores, and what saving refuses one refuses."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from django.db import transaction

from playground.comparison.request import StateBody
from projects.definitions import Definitions, read_definitions
from projects.models import Flag, FlagEnvironment, ProjectEnvironment, Segment, Strategy
from projects.revision import read_revisions
from tests.support.comparison import drafted
from tests.support.examples import examples
from tests.support.flags import add_strategy, depend, make_flag
from tests.support.for_each import for_each
from tests.support.playground import live_flag
from tests.support.records import refused

FLAG = "/api/admin/projects/shop/features/f"
PLACE = f"{FLAG}/environments/production"
COMPARE = "/api/admin/playground/compare"
CHECK = "/api/admin/playground/check-expectations"
NORWAY = {"contextName": "country", "operator": "IN", "values": ["NO"]}


def variants(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "weight": 0, "weightType": "variable", "stickiness": "default"} for name in names]


def stored(*names: str) -> list[dict[str, Any]]:
    return [each | {"weight": 1000 // len(names)} for each in variants(*names)]


@pytest.fixture
def flag(shop: Any) -> Flag:
    live_flag("p1")
    live_flag("p2")
    found = live_flag("f", strategies=(), variants=stored("a", "b", "c"))
    vip = Segment.objects.create(name="vip", constraints=[NORWAY])
    parameters = {"rollout": "10", "stickiness": "userId", "groupId": "g"}
    add_strategy(
        *(found, "production"),
        name="flexibleRollout", title="first", parameters=parameters, constraints=[NORWAY],
        variants=stored("x", "y", "z"), segments=(vip,), sort_order=3,
    )  # fmt: skip
    add_strategy(found, "production", disabled=True, sort_order=7)
    return found


# The state -------------------------------------------------------------------------------------------------------


def definitions_of(draft: dict[str, Any]) -> Definitions:
    body = StateBody(data={"environment": "production", "draft": {"flag": "f"} | draft})
    body.is_valid(raise_exception=True)
    state = drafted(body.validated_data, read_revisions(["shop"]))
    return state.draft.apply_to(read_definitions(["shop"], "production", segments=state.used_segments))


def flags_of(read: Definitions, known: set[str]) -> list[dict[str, Any]]:
    """Without what saving makes up: ids of new strategies, and numbers for the order."""
    return [
        flag
        | {
            "strategies": [
                {**strategy, "sortOrder": None, "id": strategy["id"] if strategy.get("id") in known else ""}
                for strategy in flag["strategies"]
            ]
        }
        for flag in read.flags
    ]


def ids() -> list[str]:
    return [str(strategy.pk) for strategy in Strategy.objects.filter(flag__name="f").order_by("sort_order")]


class Saving:
    """Saves the members of a draft through the API."""

    def __init__(self, api: Any) -> None:
        self.api = api["admin"]

    def send(self, method: str, path: str, body: Any = None) -> Any:
        response = getattr(self.api, method)(path, body)
        assert response.status_code < 300, (path, body, response.content)
        return response.json() if response.content else None

    def save(self, draft: dict[str, Any]) -> None:
        if "strategies" in draft:
            self.save_strategies(draft["strategies"])
        if "variants" in draft:
            self.send("put", f"{PLACE}/variants", draft["variants"])
        if "dependencies" in draft:
            self.send("delete", f"{FLAG}/dependencies")
            for parent in draft["dependencies"]:
                self.send("post", f"{FLAG}/dependencies", parent)
        if "enabled" in draft:
            self.send("post", f"{PLACE}/{'on' if draft['enabled'] else 'off'}")
        if draft.get("archived"):
            self.send("delete", FLAG)

    def save_strategies(self, given: list[dict[str, Any]]) -> None:
        """Those that are enabled first, so that the flag is turned off only if none is in the end."""
        removed, places = set(ids()) - {each.get("id") for each in given}, {}
        for place, strategy in sorted(enumerate(given), key=lambda each: bool(each[1].get("disabled", True))):
            members = {name: value for name, value in strategy.items() if name not in ("id", "sortOrder")}
            if "id" in strategy:
                self.send("put", f"{PLACE}/strategies/{strategy['id']}", members)
                places[strategy["id"]] = place
            else:
                places[self.send("post", f"{PLACE}/strategies", members)["id"]] = place
        for identifier in removed:
            self.send("delete", f"{PLACE}/strategies/{identifier}")
        orders = [{"id": identifier, "sortOrder": place} for identifier, place in places.items()]
        self.send("post", f"{PLACE}/strategies/set-sort-order", orders)


def check(api: Any, draft: dict[str, Any]) -> None:
    known = set(ids())
    predicted = flags_of(definitions_of(draft), known)
    Saving(api).save(draft)
    assert flags_of(read_definitions(["shop"], "production"), known) == predicted


MEMBERS: dict[str, list[Any]] = {
    "name": ["flexibleRollout", "default"],
    "title": [None, "second", ""],
    "disabled": [True, False, None],
    "sortOrder": [9, None],
    "parameters": [None, {}, {"rollout": "30"}, {"rollout": 55, "stickiness": "random"}],
    "constraints": [None, [], [NORWAY], [NORWAY | {"operator": "NOT_IN", "value": 5}]],
    "variants": [None, [], variants("z", "y", "x"), variants("q"), stored("x", "y", "z")],
    "segments": [None, []],
}


@for_each(("member", "value"), [(name, one) for name, all_ in MEMBERS.items() for one in all_])
def test_a_strategy_keeps_what_a_draft_does_not_name(api: Any, flag: Flag, member: str, value: Any) -> None:
    first, second = ids()
    check(api, {"strategies": [{"id": first, member: value}, {"id": second}]})


def test_a_strategy_that_is_only_named_changes_nobody(api: Any, flag: Flag) -> None:
    draft = {"flag": "f", "strategies": [{"id": identifier} for identifier in ids()]}
    body = {
        "from": {"environment": "production"},
        "to": {"environment": "production", "draft": draft},
        "contexts": {"synthetic": 200, "generated": True},
        "flag": "f",
    }
    found = api["viewer"].post(COMPARE, body).json()
    assert found["counts"]["unchanged"] == found["contexts"]


def some(random: Random, choices: dict[str, Any]) -> dict[str, Any]:
    return {name: random.choice(values) for name, values in choices.items() if random.random() < 0.3}


def some_strategies(random: Random) -> list[dict[str, Any]]:
    kept = [{"id": identifier} | some(random, MEMBERS) for identifier in ids() if random.random() < 0.7]
    new = [{"name": "flexibleRollout"} | some(random, MEMBERS) for _ in range(random.choice((0, 0, 1, 2)))]
    found = kept + new
    random.shuffle(found)
    return found


def some_draft(random: Random) -> dict[str, Any]:
    parents = [
        [],
        [{"feature": "p1"}],
        [{"feature": "p1", "enabled": False}, {"feature": "p2", "variants": ["a"]}],
    ]
    draft = some(
        random,
        {
            "enabled": [True, False],
            "variants": [[], variants("c", "b"), stored("a", "b", "c"), variants("new")],
            "dependencies": parents,
            "archived": [True, False, False],
        },
    )
    return draft | ({"strategies": some_strategies(random)} if random.random() < 0.7 else {})


def test_any_draft_predicts_what_is_stored(api: Any, flag: Flag) -> None:
    assert api["admin"]  # before what is rolled back
    for seed in range(examples(30)):
        random = Random(seed)
        with transaction.atomic():
            if random.random() < 0.2:
                Strategy.objects.filter(flag=flag).update(disabled=True)
            if random.random() < 0.2:
                Strategy.objects.filter(flag=flag).delete()
            check(api, some_draft(random))
            transaction.set_rollback(True)


@for_each("segments", [[], ["vip"]])
def test_turned_on_without_a_strategy_it_gets_the_default_one(
    api: Any, flag: Flag, segments: list[str]
) -> None:
    Strategy.objects.filter(flag=flag).delete()
    FlagEnvironment.objects.filter(flag=flag).update(enabled=False)
    used = [Segment.objects.get(name=name).pk for name in segments]
    default = {"name": "flexibleRollout", "parameters": {"rollout": "40"}, "segments": used}
    rows = ProjectEnvironment.objects.filter(project="shop", environment="production")
    rows.update(default_strategy=default)
    check(api, {"enabled": True})


# What saving refuses -----------------------------------------------------------------------------------------------

Make = Callable[[], dict[str, Any]]


def archived_parent() -> dict[str, Any]:
    depend(live_flag("child"), Flag.objects.get(name="f"))
    return {"archived": True}


def bad_default(**more: Any) -> dict[str, Any]:
    Strategy.objects.filter(flag__name="f").update(disabled=True)
    rows = ProjectEnvironment.objects.filter(project="shop", environment="production")
    rows.update(default_strategy={"name": "default", "segments": [404]})
    return {"enabled": True} | more


def full(**draft: Any) -> Make:
    def make() -> dict[str, Any]:
        Strategy.objects.filter(flag__name="f").update(disabled=True)
        for place in range(28):
            add_strategy(Flag.objects.get(name="f"), "production", disabled=True, sort_order=10 + place)
        return draft or {"strategies": [*({"id": each} for each in ids()), {"name": "default"}]}

    return make


def twice() -> dict[str, Any]:
    return {"strategies": [{"id": ids()[0]}, {"id": ids()[0]}]}


def second_generation() -> dict[str, Any]:
    depend(live_flag("child"), Flag.objects.get(name="f"))
    return {"dependencies": [{"feature": "p1"}]}


def gone_parent() -> dict[str, Any]:
    make_flag("gone", archived=True)
    return {"dependencies": [{"feature": "gone"}]}


REFUSED: dict[str, tuple[Make, str, str]] = {
    "archive a parent": (archived_parent, "archived", "f cannot be archived: child would lose what it depends on."),
    "default strategy": (bad_default, "enabled", "segment 404 not found"),
    "no room for the default": (full(enabled=True), "enabled", "f has 30 strategies in production, the maximum."),
    "no room": (full(), "strategies", "f has 30 strategies in production, the maximum."),
    "a strategy twice": (twice, "strategies[1].id", "is listed more than once"),
    "a new one without a type": (lambda: {"strategies": [{}]}, "strategies[0].name", "is required"),
    "an unknown one": (lambda: {"strategies": [{"id": "0" * 32}]}, "strategies[0].id", "f has no strategy 0000"),
    "an empty segment list": (lambda: {"strategies": [{"name": "default", "segments": [404]}]}, "strategies[0].segments[0]", "segment 404 not found"),
    "parameters": (lambda: {"strategies": [{"id": ids()[0], "parameters": {"rollout": []}}]}, "strategies[0].parameters.rollout", ""),
    "weights": (lambda: {"variants": [{"name": "a", "weight": 1, "weightType": "fix"}]}, "variants", "at least one variant needs"),
    "a payload": (lambda: {"variants": [variants("a")[0] | {"payload": {"type": "json", "value": "{"}}]}, "variants[0].payload.value", "invalid JSON (line 1, column 2)"),
    "a parent of its own": (second_generation, "dependencies[0]", "child depends on f; a parent cannot have a parent"),
    "an archived parent": (gone_parent, "dependencies[0]", "gone is archived; a parent must be active"),
    "a parent twice": (lambda: {"dependencies": [{"feature": "p1"}] * 2}, "dependencies[1]", "f already depends on p1"),
    "a segment twice": (lambda: {"segments": [{"id": Segment.objects.get().pk, "constraints": []}] * 2}, "segments[1].id", "is listed more than once"),
    "a huge segment": (lambda: {"segments": [{"id": 2**63 - 1, "constraints": []}]}, "segments[0].id", "not found"),
}  # fmt: skip


@for_each("case", REFUSED)
@for_each("where", ["to", "asIf"])
def test_what_cannot_be_saved_says_so(api: Any, flag: Flag, case: str, where: str) -> None:
    make, path, message = REFUSED[case]
    state = {"environment": "production", "draft": {"flag": "f"} | make()}
    if where == "to":
        body = {"from": {"environment": "production"}, "to": state, "contexts": {"synthetic": 5}}
        response = api["viewer"].post(COMPARE, json.dumps(body), content_type="application/json")
    else:
        text = json.dumps({"asIf": state})
        response = api["viewer"].post(CHECK, text, content_type="application/json")
    details = refused(response, 400, "ValidationError")["details"]
    assert f"{where}.draft.{path}" in [detail["path"] for detail in details]
    assert message in str(details)


def test_several_problems_are_all_named(api: Any, flag: Flag) -> None:
    draft = {
        "flag": "f",
        "strategies": [{"name": "nosuch"}],
        "variants": [{"name": "", "weight": 1}],
    } | archived_parent()
    body = {"from": {"environment": "production"}, "to": {"environment": "production", "draft": draft}}
    record = refused(
        api["viewer"].post(COMPARE, body | {"contexts": {"synthetic": 5}}),
        400,
        "ValidationError",
    )
    paths = {detail["path"].removeprefix("to.draft.") for detail in record["details"]}
    assert {"strategies[0].name", "variants[0].name", "archived"} <= paths


def test_an_environment_that_the_project_does_not_use(api: Any, flag: Flag) -> None:
    ProjectEnvironment.objects.filter(project="shop", environment="development").delete()
    for draft, status in (
        ({"enabled": True}, 400),
        ({"strategies": []}, 400),
        ({"variants": []}, 400),
        ({"dependencies": []}, 200),
    ):
        state = {"environment": "development", "draft": {"flag": "f"} | draft}
        body = {"from": {"environment": "development"}, "to": state, "contexts": {"synthetic": 5}}
        response = api["viewer"].post(COMPARE, body)
        assert response.status_code == status, response.content
        if status == 400:
            [detail] = response.json()["details"]
            assert detail == {
                "path": "to.environment",
                "message": "Project shop has no environment development.",
            }


def test_more_strategies_than_the_limit_can_be_edited(api: Any, flag: Flag, settings: Any) -> None:
    full()()
    add_strategy(flag, "production", sort_order=90)
    check(api, {"strategies": [{"id": each, "title": "x"} for each in ids()]})
