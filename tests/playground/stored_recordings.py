"""Recorded states, stored in the database, to compare the API's answers with the engine's."""

from typing import Any

import orjson
from django.utils import timezone

from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.response.writer import render_features
from projects.models import Dependency, Flag, FlagEnvironment, Segment, Strategy, StrategySegment
from tests.playground.recordings import Recording, comparable, compile_recording
from tests.support.cast import make_project

CASES_EACH = 6


def no_luck() -> float:
    return 0.5


def can_be_stored(definition, found):
    """Foreign keys allow no parent and no segment that is not there."""
    parents = {dependency["feature"] for dependency in definition.get("dependencies") or []}
    segments = {number for strategy in definition["strategies"] for number in strategy.get("segments") or []}
    return parents <= found.definitions.keys() and segments <= found.segments.keys()


def store(found: Recording, project: str) -> dict[str, str]:
    """Writes the rows of a recording. Answers the recorded strategy ids by the stored ones."""
    now, ids = timezone.now(), {}
    for number, segment in found.segments.items():
        Segment.objects.create(id=number, name=segment["name"], constraints=segment["constraints"])
    flags = {
        name: Flag.objects.create(name=name, project_id=project, created_at=now) for name in found.definitions
    }
    for name, definition in found.definitions.items():
        FlagEnvironment.objects.create(
            flag=flags[name],
            environment_id=found.environment,
            enabled=definition["enabled"],
            variants=definition.get("variants") or [],
        )
        for order, given in enumerate(definition["strategies"]):
            kept = {key: given[key] for key in ("parameters", "constraints", "variants") if key in given}
            row = Strategy.objects.create(
                flag=flags[name],
                environment_id=found.environment,
                name=given["name"],
                title=given.get("title"),
                disabled=bool(given.get("disabled")),
                sort_order=order,
                **kept,
            )
            ids[str(row.pk)] = given["id"]
            for number in dict.fromkeys(given.get("segments") or []):
                StrategySegment.objects.create(strategy=row, segment_id=number)
        for dependency in definition.get("dependencies") or []:
            Dependency.objects.create(
                flag=flags[name],
                parent=flags[dependency["feature"]],
                enabled=dependency.get("enabled", True),
                variants=dependency.get("variants") or [],
            )
    return ids


def with_ids(answer: bytes, ids: dict[str, str]) -> bytes:
    text = answer.decode()
    for stored, recorded in ids.items():
        text = text.replace(stored, recorded)
    return text.encode()


def check_the_api_answers_as_the_engine(found: Recording, caller: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("playground.queries.random.random", no_luck)
    found = found._replace(
        definitions={name: d for name, d in found.definitions.items() if can_be_stored(d, found)}
    )
    [project] = {definition["project"] for definition in found.definitions.values()}
    make_project(project)
    ids = store(found, project)
    snapshot = compile_recording(found)
    seen = 0
    for case in found.cases[:: max(1, len(found.cases) // CASES_EACH)]:
        if case["request"]["environment"] != found.environment:
            continue
        context = {"currentTime": "2026-11-21T00:00:00Z"} | case["request"]["context"]
        body = {"projects": [project], "environment": found.environment, "context": context}
        response = caller.post("/api/admin/playground", body)
        assert response.status_code == 200, response.content
        ours = orjson.loads(with_ids(response.content, ids))["features"]
        evaluation = evaluate(snapshot.snapshot, Context(context), now=timezone.now(), random=no_luck)
        wanted = orjson.loads(render_features(snapshot, evaluation))
        assert [feature["name"] for feature in ours] == [feature["name"] for feature in wanted]
        for mine, engine in zip(ours, wanted, strict=True):
            assert comparable(mine) == comparable(engine)
            seen += 1
    assert seen or not found.definitions
