"""Where this engine, Yggdrasil and Node's SDK give different results: only where docs/sdk.md says so.

Yggdrasil is the engine of most of Unleash's SDKs, Node's SDK has one of its own. Where the two agree, this engine gives
the same result. Random results are left out.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest
from yggdrasil_engine.engine import UnleashEngine

from tests.playground.engine.sdk_differences import NODE, YGGDRASIL, kinds_of
from tests.support.documented_tables import rows
from tests.support.engine import compiled
from tests.support.node_packages import installed
from tests.support.odd_flags import OddFlags
from tests.support.programs import program
from tests.support.yggdrasil import certain_results, sdk_results

pytestmark = [pytest.mark.processes, pytest.mark.exhaustive]

STATES = 3_000
CONTEXTS_EACH = 5

Result = tuple[bool, str]
"""Whether the flag is on, and the name of its variant."""


class Compared(NamedTuple):
    """A flag for a context, with the results of all three and the kinds of differences that it may have."""

    state: dict[str, Any]
    context: dict[str, Any]
    name: str
    ours: Result
    yggdrasil: Result
    node: Result
    kinds_of_yggdrasil: set[str]
    kinds_of_node: set[str]


Asked = list[tuple[dict[str, Any], list[dict[str, Any]]]]


def node_results(asked: Asked) -> Iterator[list[dict[str, Result]]]:
    """For each state, and each of its contexts, the results of its flags."""
    lines = (
        json.dumps({"features": state["features"], "segments": state["segments"], "contexts": contexts})
        for state, contexts in asked
    )
    done = subprocess.run(
        [program("node"), "evaluate.mjs"],
        cwd=installed("unleash-client"),
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        yield [{name: (on, variant) for name, (on, variant) in answer.items()} for answer in json.loads(line)]


def compare(asked: Asked) -> Iterator[Compared]:
    for (state, contexts), answers in zip(asked, node_results(asked), strict=True):
        engine = UnleashEngine()
        engine.take_state(json.dumps(state))
        snapshot = compiled(state)
        faults = {flag.name: flag.fault for flag in snapshot.flags}
        for context, node in zip(contexts, answers, strict=True):
            ours = certain_results(snapshot, context)
            yggdrasil = sdk_results(engine, list(ours), context)
            for name, result in ours.items():
                kinds = [kinds_of(every, name, context, state, faults) for every in (YGGDRASIL, NODE)]
                yield Compared(state, context, name, result, yggdrasil[name], node[name], *kinds)


@pytest.fixture(scope="module")
def results() -> list[Compared]:
    source = OddFlags(1)
    asked = [(source.state(), [source.context() for _ in range(CONTEXTS_EACH)]) for _ in range(STATES)]
    return list(compare(asked))


def test_what_sdks_agree_on_is_our_result(results: list[Compared]) -> None:
    assert [result for result in results if result.yggdrasil == result.node != result.ours] == []


def test_differences_from_yggdrasil_are_documented(results: list[Compared]) -> None:
    assert [
        result for result in results if result.ours != result.yggdrasil and not result.kinds_of_yggdrasil
    ] == []


AFTER = {"contextName": "currentTime", "operator": "DATE_AFTER", "value": "2022-01-29T13:00:00.000Z"}
WORD = {"contextName": "country", "operator": "REGEX", "value": r"^\w+$"}
HALF = {"name": "flexibleRollout", "parameters": {"rollout": "50", "stickiness": "userId"}}
DIFFERENT: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "an empty `currentTime`": (
        [{"name": "f", "strategies": [{"name": "default", "parameters": {}, "constraints": [AFTER]}]}],
        [{"currentTime": ""}],
    ),
    "classes of regular expressions": (
        [{"name": "f", "strategies": [{"name": "default", "parameters": {}, "constraints": [WORD]}]}],
        [{"properties": {"country": "é用户"}}],
    ),
    "parents without `groupId`": (
        [
            {"name": "p", "strategies": [HALF]},
            {"name": "f", "strategies": [], "dependencies": [{"feature": "p"}]},
        ],
        [{"userId": str(number)} for number in range(10)],
    ),
}


@pytest.mark.parametrize("kind", YGGDRASIL)
def test_each_documented_difference_from_yggdrasil_is_one(kind: str) -> None:
    flags, contexts = DIFFERENT[kind]
    state = {
        "version": 2,
        "features": [{"type": "release", "enabled": True, **flag} for flag in flags],
        "segments": [],
    }
    sent = [{"appName": "app", "environment": "default", "properties": {}, **each} for each in contexts]
    differ = [each for each in compare([(state, sent)]) if each.ours != each.yggdrasil]
    assert differ
    assert all(each.kinds_of_yggdrasil == {kind} for each in differ)


def test_differences_from_node_are_documented(results: list[Compared]) -> None:
    differ = [result for result in results if result.ours == result.yggdrasil != result.node]
    assert [result for result in differ if not result.kinds_of_node] == []
    alone = (result.kinds_of_node for result in differ if len(result.kinds_of_node) == 1)
    assert set().union(*alone) == set(NODE)


def test_most_flags_are_of_no_kind(results: list[Compared]) -> None:
    """Otherwise the kinds would excuse anything."""
    plain = sum(not result.kinds_of_node for result in results)
    assert plain > len(results) / 2


@pytest.mark.parametrize(("heading", "kinds"), [("Node's SDK", NODE), ("Yggdrasil", YGGDRASIL)])
def test_every_kind_is_documented(heading: str, kinds: Mapping[str, object]) -> None:
    assert [kind for kind, *_ in rows("sdk.md", heading)] == list(kinds)
