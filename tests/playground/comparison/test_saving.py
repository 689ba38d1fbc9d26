"""What a draft is said to change is what saving it changes, for every kind of edit."""

from collections.abc import Callable
from typing import Any

import pytest

from groups.access import Caller
from playground.comparison.compare import Comparison
from playground.comparison.contexts import generate_contexts
from playground.comparison.states import Stored, compile_states, read_states
from playground.comparison.table import ContextTable
from playground.comparison.users import make_users
from playground.snapshot_cache import load_snapshot
from projects.flags.archive import actions as archive
from projects.flags.dependencies import actions as dependencies
from projects.flags.environments import actions as environments
from projects.models import Dependency, ProjectEnvironment, Segment, Strategy
from projects.revision import read_revisions
from projects.segments import actions as segments
from projects.strategies import actions as strategies
from tests.support.comparison import drafted
from tests.support.engine import NOW
from tests.support.flags import add_strategy, make_flag
from tests.support.playground import live_flag

WHO = Caller.system()
PLACE = ("shop", "f", "production")


def constraint(field: str, operator: str, *values: str) -> dict[str, Any]:
    return {"contextName": field, "operator": operator, "values": list(values)}


def rollout(percent: str, *constraints: Any, **members: Any) -> dict[str, Any]:
    parameters = {"rollout": percent, "stickiness": "default", "groupId": "g"}
    return {"name": "flexibleRollout", "parameters": parameters, "constraints": list(constraints)} | members


def variants(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "weight": 0, "weightType": "variable", "stickiness": "default"} for name in names]


NORWAY = constraint("country", "IN", "NO")


@pytest.fixture
def flag(shop: Any) -> Any:
    live_flag("parent", strategies=[rollout("50", variants=stored("x", "y"))])
    found = live_flag("f", strategies=[rollout("30", NORWAY), rollout("60")], variants=stored("a", "b"))
    vip = Segment.objects.create(name="vip", constraints=[constraint("userId", "STR_ENDS_WITH", "7")])
    add_strategy(found, "production", segments=(vip,), sort_order=5)
    Dependency.objects.create(flag=live_flag("child"), parent=found)
    return found


def stored(*names: str) -> list[dict[str, Any]]:
    return [each | {"weight": 1000 // len(names)} for each in variants(*names)]


def listed() -> list[dict[str, Any]]:
    """The flag's strategies as a form sends them back."""
    rows = Strategy.objects.filter(flag__name="f", environment="production")
    kept = ("name", "parameters", "constraints", "variants", "disabled")
    return [
        {"id": row.pk, "segments": [s.pk for s in row.segments.all()]}
        | {key: getattr(row, key) for key in kept}
        for row in rows
    ]


def first() -> str:
    return str(listed()[0]["id"])


Edit = tuple[Callable[[], dict[str, Any]], Callable[[], object]]


def of_strategy(changes: dict[str, Any]) -> Edit:
    return (
        lambda: {"strategies": [listed()[0] | changes, *listed()[1:]]},
        lambda: strategies.update_strategy(*PLACE, first(), changes, caller=WHO),
    )


def remove_all() -> None:
    for strategy in listed():
        strategies.remove_strategy(*PLACE, str(strategy["id"]), caller=WHO)


def set_segment(*values: str) -> Edit:
    given = [constraint("userId", "STR_ENDS_WITH", *values)]
    vip = Segment.objects.filter(name="vip")
    return (
        lambda: {"segments": [{"id": vip.get().pk, "constraints": given}]},
        lambda: segments.update_segment(vip.get().pk, {"name": "vip", "constraints": given}, caller=WHO),
    )


def to_parent(given: dict[str, Any]) -> Edit:
    def draft() -> dict[str, Any]:
        Dependency.objects.all().delete()  # a flag with a child cannot have a parent
        return {"dependencies": [given]}

    return draft, lambda: dependencies.add_dependency("shop", "f", given, caller=WHO)


EDITS: dict[str, Edit] = {
    "rollout": of_strategy({"parameters": rollout("80")["parameters"]}),
    "stickiness": of_strategy({"parameters": {"rollout": "30", "stickiness": "random", "groupId": "g"}}),
    "defaults of parameters": of_strategy({"parameters": {}}),
    "constraint": of_strategy({"constraints": [constraint("country", "NOT_IN", "NO", "SE")]}),
    "strategy variants": of_strategy({"variants": variants("q", "p", "r")}),
    "disabled strategy": of_strategy({"disabled": True}),
    "strategy segment": (
        lambda: {"strategies": [listed()[0] | {"segments": [Segment.objects.get().pk]}, *listed()[1:]]},
        lambda: strategies.update_strategy(
            *PLACE, first(), {"segments": [Segment.objects.get().pk]}, caller=WHO
        ),
    ),
    "new strategy": (
        lambda: {"strategies": [*listed(), rollout("90", NORWAY)]},
        lambda: strategies.add_strategy(*PLACE, rollout("90", NORWAY), caller=WHO),
    ),
    "removed strategy": (
        lambda: {"strategies": listed()[1:]},
        lambda: strategies.remove_strategy(*PLACE, first(), caller=WHO),
    ),
    "last strategy removed": (lambda: {"strategies": []}, remove_all),
    "order": (
        lambda: {"strategies": listed()[::-1]},
        lambda: strategies.order_strategies(
            *PLACE, [(str(s["id"]), n) for n, s in enumerate(listed()[::-1])], caller=WHO
        ),
    ),
    "variants": (
        lambda: {"variants": variants("c", "b", "a")},
        lambda: environments.set_variants(*PLACE, variants("c", "b", "a"), caller=WHO),
    ),
    "switch": (lambda: {"enabled": False}, lambda: environments.disable_flag(*PLACE, caller=WHO)),
    "segment": set_segment("1", "2"),
    "parent": to_parent({"feature": "parent"}),
    "parent with a variant": to_parent({"feature": "parent", "variants": ["x"]}),
    "parent that is off": to_parent({"feature": "parent", "enabled": False}),
    "archive": (
        lambda: Dependency.objects.all().delete() and {"archived": True},
        lambda: archive.archive_flags("shop", ["f"], caller=WHO),
    ),
}


def results(comparison: Comparison, names: list[str]) -> list[Any]:
    return [(found.name, found.pairs, found.before, found.after) for found in map(comparison.flag, names)]


def check(names: list[str], draft: dict[str, Any], save: Callable[[], object]) -> None:
    """Compares the prediction of a draft with the difference that saving it makes."""
    current = read_revisions(["shop"])
    given = draft if "segments" in draft else {"flag": "f"} | draft
    states = [Stored("production"), drafted({"environment": "production", "draft": given}, current)]
    read = read_states(current, states, ["f", "parent", "child"])
    table = ContextTable(
        [*generate_contexts(read, now=NOW, limit=500), *make_users(read, now=NOW, count=300)]
    )
    now, then = compile_states(current, states)
    predicted = results(Comparison(now, then, table), names)
    save()
    saved = load_snapshot(["shop"], "production").snapshot
    assert results(Comparison(now, saved, table), names) == predicted
    assert any(len(pairs) > 1 or next(iter(pairs))[0] != next(iter(pairs))[1] for _, pairs, _, _ in predicted)


@pytest.mark.parametrize("edit", EDITS)
def test_the_prediction_is_what_happens(flag: Any, edit: str) -> None:
    draft, save = EDITS[edit]
    check(["f", "child", "parent"], draft(), save)


@pytest.mark.parametrize("default", [None, rollout("40", NORWAY), "with a segment"])
def test_turned_on_without_a_strategy(shop: Any, default: Any) -> None:
    if default == "with a segment":
        vip = Segment.objects.create(name="vip", constraints=[constraint("userId", "STR_ENDS_WITH", "7")])
        default = rollout("40", segments=[vip.pk])
    rows = ProjectEnvironment.objects.filter(project=shop, environment="production")
    rows.update(default_strategy=default)
    make_flag("f")
    check(["f"], {"enabled": True}, lambda: environments.enable_flag(*PLACE, caller=WHO))


def test_an_edit_that_changes_nothing_changes_nobody(flag: Any) -> None:
    current = read_revisions(["shop"])
    draft = {"environment": "production", "draft": {"flag": "f", "strategies": listed()}}
    states = [Stored("production"), drafted(draft, current)]
    read = read_states(current, states, ["f"])
    before, after = compile_states(current, states)
    comparison = Comparison(before, after, ContextTable(generate_contexts(read, now=NOW, limit=500)))
    assert [comparison.flag(name).changed for name in comparison.names()] == [0, 0, 0]
