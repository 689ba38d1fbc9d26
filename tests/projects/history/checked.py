"""Compares the past, from versions and read back from the audit events, with what was stored."""

from datetime import datetime
from importlib import import_module
from typing import Any

from django.db import connection
from django.utils import timezone

from projects.definitions import Definitions, read_definitions
from projects.history.definitions_at import flags_then, read_changed_since
from projects.history.frozen.backfill import fill_chunk, rewind_changed
from projects.models import VERSIONS, OutsideChange, VersionsSince
from projects.models.versions import BEGINNING, NEVER
from tests.support.cast import make_project
from tests.support.random_changes import NAMES, PROJECTS, RandomChanges

ENVIRONMENTS = ["development", "production", "extra"]


def as_one(definitions_then: Definitions) -> dict[str, Any]:
    return {"flags": definitions_then.flags, "segments": dict(sorted(definitions_then.segments.items()))}


def at(moment: datetime, project: str, environment: str) -> Definitions:
    return read_changed_since([project], environment, moment).applied(
        read_definitions([project], environment)
    )


def rewound(moment: datetime, project: str, environment: str) -> Definitions:
    """As ``at``, from audit events."""
    return rewind_changed([project], environment, moment).applied(read_definitions([project], environment))


def check_versions() -> None:
    """The versions that are still valid are the rows that there are, and no two of a row overlap."""
    for source, versions in VERSIONS.items():
        key, *columns = [
            field.column for field in versions._meta.concrete_fields if not field.column.startswith("valid_")
        ]
        now = list(source._default_manager.order_by("pk").values_list(key, *columns))
        valid = versions._default_manager.filter(valid_to=NEVER)
        assert list(valid.order_by(key).values_list(key, *columns)) == now, source.__name__
        end: dict[Any, datetime] = {}
        for pk, start, stop in versions._default_manager.order_by(key, "valid_to").values_list(
            key, "valid_from", "valid_to"
        ):
            assert end.get(pk, start) <= start < stop, (source.__name__, pk)
            end[pk] = stop


def stored() -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (project, environment): as_one(read_definitions([project], environment))
        for project in PROJECTS
        for environment in ENVIRONMENTS
    }


def check_history(seed: int, steps: int, kind: type[RandomChanges] = RandomChanges) -> RandomChanges:
    """Makes random changes, and compares the past with what was stored each time, and with none.

    The two ways to read it are also compared at moments between.
    """
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
        check_versions()
        if done:
            then.append((done, timezone.now(), stored()))
    for done, moment, expected in then:
        for (project, environment), was in expected.items():
            place = (moment, project, environment)
            assert as_one(at(*place)) == was, (done, project, environment)
            assert as_one(rewound(*place)) == was, (done, project, environment)
            assert as_one(read_definitions([project], environment, at=moment)) == was, (done, project)
        check_one_flag(changes, moment, expected)
    first, last = then[0][1], then[-1][1]
    for _ in range(steps):
        moment = first + (last - first) * changes.random.random()
        place = (moment, changes.random.choice(PROJECTS), changes.random.choice(ENVIRONMENTS))
        assert as_one(at(*place)) == as_one(rewound(*place)), place
    check_backfill(then)
    return changes


def check_backfill(then: list[tuple[str, datetime, Any]]) -> None:
    """What versions tell after an upgrade that found none, once former events have been taken back."""
    forget_versions()
    while fill_chunk(7):  # events; as if it was interrupted each time
        check_versions()
    assert VersionsSince.objects.get().since == BEGINNING
    for done, moment, expected in then:
        for (project, environment), was in expected.items():
            assert as_one(read_definitions([project], environment, at=moment)) == was, (done, project)


def forget_versions() -> None:
    """Leaves the versions that the upgrade makes."""
    with connection.cursor() as cursor:
        for versions in VERSIONS.values():
            versions._default_manager.all().delete()
        for statement in import_module("projects.migrations.0036_versions").PRESENT:
            cursor.execute(statement)
    VersionsSince.objects.update(since=timezone.now(), kept_since=timezone.now())


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
