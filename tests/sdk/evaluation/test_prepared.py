"""The digest of what decides an answer: the same in every worker, and another whenever the answer may be."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from playground.engine.context import Context
from playground.response.snapshot import ResponseSnapshot, compile_playground
from sdk.evaluation.prepared import Prepared, answer_toggles, find_dates_reached, prepare
from tests.support.engine import NOW


def after(year: int) -> dict[str, Any]:
    return {"contextName": "currentTime", "operator": "DATE_AFTER", "value": f"{year}-01-01T00:00:00Z"}


def flag(flag_name: str, segment: int = 0, **more: Any) -> dict[str, Any]:
    strategy = {
        "id": flag_name,
        "name": "default",
        "segments": [segment] if segment else [],
        "constraints": [],
    }
    return {"name": flag_name, "project": "p", "enabled": True, "strategies": [strategy | more]}


def compiled(*flags: Any) -> ResponseSnapshot:
    return compile_playground(flags, {}, environment="production")


def digest(snapshot: ResponseSnapshot, context: Any, now: datetime = NOW, revision: int = 1) -> str:
    return Prepared(snapshot, {"p": revision}).digest(Context(context).at(now))


def test_the_way_to_a_snapshot_does_not_matter() -> None:
    segments = {n: {"name": f"s{n}", "constraints": [after(2025 + n)]} for n in (1, 2, 3)}
    unused = flag("d", constraints=[{"contextName": "plan", "operator": "IN", "values": ["pro"]}])
    before = compile_playground(
        [flag("b", 2), flag("c", 3), unused], {n: segments[n] for n in (2, 3)}, environment="production"
    )
    flags, used = [flag("a", 1, constraints=[after(2020)]), flag("b", 2)], {n: segments[n] for n in (1, 2)}
    changed = compile_playground(flags, used, environment="production", earlier=before)
    fresh = compile_playground(flags, used, environment="production")
    context = Context({"userId": "7", "plan": "pro"}).at(NOW)
    reached = [find_dates_reached(each.snapshot, context) for each in (changed, fresh)]
    assert reached[0] == reached[1]
    assert [result for _, result in reached[0]] == [True, True, False]
    assert digest(changed, {"userId": "7", "plan": "pro"}) == digest(fresh, {"userId": "7", "plan": "pro"})


def test_only_what_flags_look_at_counts() -> None:
    snapshot = compiled(flag("a", constraints=[{"contextName": "plan", "operator": "IN", "values": ["pro"]}]))
    first = digest(snapshot, {"userId": "7", "plan": "pro"})
    assert first == digest(snapshot, {"userId": "7", "plan": "pro", "country": "NO"})
    assert first == digest(snapshot, {"userId": "7", "properties": {"plan": "pro"}}, datetime.now(UTC))
    assert first != digest(snapshot, {"userId": "7", "plan": "pro"}, revision=2)
    assert (
        len({first, digest(snapshot, {"userId": "7"}), digest(snapshot, {"userId": "8", "plan": "pro"})}) == 3
    )


@pytest.mark.parametrize("stickiness", ["default", "sessionId", "country", "random", "currentTime"])
def test_what_is_hashed_counts(stickiness: str) -> None:
    parameters = {"rollout": "50", "stickiness": stickiness, "groupId": "g"}
    snapshot = compiled(flag("a", name="flexibleRollout", parameters=parameters))
    field = "sessionId" if stickiness == "default" else stickiness
    assert digest(snapshot, {field: "1"}) != digest(snapshot, {field: "2"})


def test_the_moment_counts_where_it_is_hashed_and_dates_where_they_are_compared() -> None:
    earlier, later = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    dated = compiled(flag("a", constraints=[after(2027)]))
    assert digest(dated, {}, earlier) == digest(dated, {}, later)
    assert digest(dated, {}, earlier) != digest(dated, {}, datetime(2027, 6, 1, tzinfo=UTC))
    parameters = {"rollout": "50", "stickiness": "currentTime", "groupId": "g"}
    hashed = compiled(flag("a", name="flexibleRollout", parameters=parameters))
    assert digest(hashed, {}, earlier) != digest(hashed, {}, later)


def test_an_override_counts() -> None:
    variants = [{"name": "v", "weight": 1, "overrides": [{"contextName": "plan", "values": ["pro"]}]}]
    snapshot = compiled(flag("a") | {"variants": variants})
    assert digest(snapshot, {"plan": "pro"}) != digest(snapshot, {"plan": "free"})


def test_a_snapshot_is_prepared_once() -> None:
    snapshot = compiled(flag("a"))
    assert prepare(snapshot, {"p": 1}) is prepare(snapshot, {"p": 1})


def test_what_changed_is_evaluated_anew_for_a_known_context() -> None:
    """Of 100 flags of which one changes, in answers whose ETags follow."""
    flags = [flag(f"f{n:02}") for n in range(100)]
    context = Context({"userId": "7"}).at(NOW)
    before = compiled(*flags)
    first = answer_toggles(Prepared(before, {"p": 1}), context, "")
    changes = [flag("f07") | {"enabled": False}], [flag("f07") | {"impression_data": True}], [flag("f07")]
    answers = [first]
    for number, changed in enumerate(changes, 2):
        before = compile_playground(
            changed, {}, environment="production", earlier=before, unchanged={"p"}, replaced={"f07"}
        )
        answers.append(answer_toggles(Prepared(before, {"p": number}), context, ""))
    bodies = [orjson.loads(answer.body or b"")["toggles"] for answer in answers if answer]
    assert [len(body) for body in bodies] == [100, 99, 100, 100]
    assert [body[7]["impressionData"] for body in (bodies[0], bodies[2], bodies[3])] == [False, True, False]
    assert len({answer.etag for answer in answers if answer}) == 4
