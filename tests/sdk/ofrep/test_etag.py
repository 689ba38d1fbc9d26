"""Workers that came by their snapshots in different ways give the same ETag."""

from typing import Any

from playground.engine.context import Context
from playground.response.snapshot import compile_playground
from sdk.ofrep.etag import find_dates_reached, make_etag
from tests.support.engine import NOW


def after(year: int) -> dict[str, Any]:
    return {"contextName": "currentTime", "operator": "DATE_AFTER", "value": f"{year}-01-01T00:00:00Z"}


def flag(name: str, segment: int, **more: Any) -> dict[str, Any]:
    strategy = {"id": name, "name": "default", "segments": [segment], "constraints": [after(2020)]}
    return {"name": name, "project": "p", "enabled": True, "strategies": [strategy]} | more


def test_the_way_to_a_snapshot_does_not_matter() -> None:
    segments = {n: {"name": f"s{n}", "constraints": [after(2025 + n)]} for n in (1, 2, 3)}
    before = compile_playground(
        [flag("b", 2), flag("c", 3)], {n: segments[n] for n in (2, 3)}, environment="production"
    )
    flags, used = [flag("a", 1), flag("b", 2)], {n: segments[n] for n in (1, 2)}
    changed = compile_playground(flags, used, environment="production", earlier=before).snapshot
    fresh = compile_playground(flags, used, environment="production").snapshot
    assert [segment.name for segment in changed.segments] != [segment.name for segment in fresh.segments]
    context = Context({"userId": "7"})
    assert find_dates_reached(changed, context, NOW) == find_dates_reached(fresh, context, NOW)
    assert [result for _, result in find_dates_reached(fresh, context, NOW)] == [True, True, False]
    first, second = (make_etag(each, {"p": 1}, context, NOW, ticket="t") for each in (changed, fresh))
    assert first == second
