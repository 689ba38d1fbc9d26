"""Compares the past, read back from the audit events, with what was stored."""

from datetime import datetime
from typing import Any

from django.db import connection
from django.utils import timezone

from projects.definitions import Definitions, read_definitions
from projects.history.definitions_at import flags_then, read_changed_since
from projects.models import OutsideChange
from tests.support.cast import make_project
from tests.support.random_changes import NAMES, PROJECTS, RandomChanges

ENVIRONMENTS = ["development", "production", "extra"]


def as_one(definitions_then: Definitions) -> dict[str, Any]:
    return {"flags": definitions_then.flags, "segments": dict(sorted(definitions_then.segments.items()))}


def at(moment: datetime, project: str, environment: str) -> Definitions:
    return read_changed_since([project], environment, moment).applied(
        read_definitions([project], environment)
    )


def stored() -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (project, environment): as_one(read_definitions([project], environment))
        for project in PROJECTS
        for environment in ENVIRONMENTS
    }


def check_history(seed: int, steps: int, kind: type[RandomChanges] = RandomChanges) -> RandomChanges:
    """Makes random changes, and compares the past with what was stored each time, and both with none."""
    make_project("docs")
    changes = kind(seed)
    then: list[tuple[str, datetime, Any]] = [("nothing", timezone.now(), stored())]
    for _ in range(steps):
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('flagadmin.audited', '', true)")
        done = changes.step()
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")
        assert not OutsideChange.objects.exists(), f"{done} left no event"
        if done:
            then.append((done, timezone.now(), stored()))
    for done, moment, expected in then:
        for (project, environment), was in expected.items():
            assert as_one(at(moment, project, environment)) == was, (done, project, environment)
        check_one_flag(changes, moment, expected)
    return changes


def check_one_flag(
    changes: RandomChanges, moment: datetime, expected: dict[tuple[str, str], dict[str, Any]]
) -> None:
    """A flag and its parents, read alone, are what they are among all."""
    (project, environment), was = changes.random.choice(list(expected.items()))
    name = changes.random.choice(NAMES)
    flags = {flag["name"]: flag for flag in was["flags"]}
    names = {name, *(parent["feature"] for parent in flags.get(name, {}).get("dependencies", ()))}
    definitions_then = flags_then([name], [project], environment, moment)
    if name not in flags:
        assert name not in [flag["name"] for flag in definitions_then.flags]
        return
    shown = [flags[each] for each in sorted(names & flags.keys())]
    used = {segment for flag in shown for strategy in flag["strategies"] for segment in strategy["segments"]}
    assert definitions_then.flags == shown
    assert definitions_then.segments == {segment: was["segments"][segment] for segment in used}
