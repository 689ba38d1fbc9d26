"""What SDKs and the playground read is found by indexes, whatever the planner's statistics say.

Without that, the first poll after a large import compared all strategies with all flags, for half a minute.
"""

from collections.abc import Callable

import pytest
from django.db import connection

from playground.snapshot_cache import cache as snapshots
from projects import definitions
from projects.definitions import read_all_definitions, read_definitions
from projects.export import export_flags
from sdk.features.api import cache as answers
from tests.support.cast import client, make_project, make_token
from tests.support.examined_rows import Examined, analyze, clear_statistics, count_examined_rows

pytestmark = pytest.mark.django_db

FLAGS, BATCH = 1_000, 800  # flags, and how many of them are read at once
BOTH = ("development", "production")
ROWS = (
    """
INSERT INTO projects_flag (name, project_id, type, stale, impression_data, created_at)
SELECT %(project)s || '-' || n, %(project)s, 'release', false, false, now() FROM generate_series(1, %(flags)s) n
""",
    """
INSERT INTO projects_flagenvironment (flag_id, environment_id, enabled, variants)
SELECT id, e, true, '[]' FROM projects_flag, unnest(%(environments)s::text[]) e WHERE project_id = %(project)s
""",
    """
INSERT INTO projects_segment (name, constraints, created_at, created_by)
SELECT %(project)s || '-' || n, '[]', now(), '' FROM generate_series(1, 20) n
""",
    """
INSERT INTO projects_strategy (id, flag_id, environment_id, name, disabled, sort_order, parameters, constraints,
       variants, created_at)
SELECT gen_random_uuid(), id, e, 'default', false, n, '{}', '[]', '[]', now()
  FROM projects_flag, unnest(%(environments)s::text[]) e, generate_series(1, 2) n WHERE project_id = %(project)s
""",
    """
INSERT INTO projects_strategysegment (strategy_id, segment_id)
SELECT s.id, g.id FROM projects_segment g, projects_strategy s
 WHERE g.name = %(project)s || '-1' AND s.flag_id IN (SELECT id FROM projects_flag WHERE project_id = %(project)s)
""",
    """
INSERT INTO projects_dependency (flag_id, parent_id, enabled, variants)
SELECT f.id, p.id, true, '[]' FROM projects_flag p, projects_flag f
 WHERE p.name = %(project)s || '-1' AND f.project_id = %(project)s AND f.id > p.id
""",
)


def fill(project: str, flags: int, environments: tuple[str, ...] = BOTH) -> None:
    make_project(project)
    values = {"project": project, "flags": flags, "environments": list(environments)}
    with connection.cursor() as cursor:
        # Without statistics, these statements would compare all rows with all.
        cursor.execute("SET LOCAL enable_nestloop = off")
        for statement in ROWS:
            cursor.execute(statement, values)
        cursor.execute("SET LOCAL enable_nestloop = on")


def never_analyzed() -> None:
    clear_statistics()
    fill("small", 20)
    fill("large", FLAGS)


def analyzed_empty() -> None:
    clear_statistics()
    analyze()
    fill("small", 20)
    fill("large", FLAGS)


def analyzed_with_one_flag() -> None:
    clear_statistics()
    fill("small", 1)
    analyze()
    fill("large", FLAGS)


def analyzed_with_one_project() -> None:
    clear_statistics()
    fill("small", 20)
    analyze()
    fill("large", FLAGS)


def analyzed_with_another_environment() -> None:
    clear_statistics()
    fill("small", 100, ("development",))
    analyze()
    fill("large", FLAGS)


def analyzed_after_all() -> None:
    fill("small", 20)
    fill("large", FLAGS)
    analyze()


def check_no_more_than_a_pass(counted: list[Examined]) -> None:
    """Each statement examines the rows that it returns, in a few nodes of its plan, and each table once at most."""
    largest = 2 * 2 * (FLAGS + 100)  # strategies
    excessive = [each for each in counted if each.examined > 5 * each.returned + largest]
    assert counted
    assert excessive == []


STATES = (
    never_analyzed,
    analyzed_empty,
    analyzed_with_one_flag,
    analyzed_with_one_project,
    analyzed_with_another_environment,
    analyzed_after_all,
)


@pytest.mark.parametrize("make_state", STATES, ids=lambda state: state.__name__)
def test_rows_examined(make_state: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "BATCH", BATCH)
    with connection.cursor() as cursor:  # no version is kept of the rows, and nobody notified of them
        for table in ("flag", "flagenvironment", "segment", "strategy", "strategysegment", "dependency"):
            cursor.execute(f"ALTER TABLE projects_{table} DISABLE TRIGGER USER")
    make_state()
    check_sdks_and_the_playground()
    check_definitions_and_exports()


def check_sdks_and_the_playground() -> None:
    backend = client(make_token("backend", environment="production"))
    some = client(make_token("backend", environment="production", projects=["large", "small"]))
    frontend = client(make_token("frontend", environment="production", projects=["large"]))
    admin = client(make_token("admin"))
    question = {"environment": "production", "projects": ["large"], "context": {"userId": "7"}}
    answers.clear()
    snapshots.clear()
    with count_examined_rows() as counted:
        assert len(backend.get("/api/client/features").json()["features"]) > FLAGS
        assert some.get("/api/client/delta").status_code == 200
        assert some.get("/api/client/features", {"project": "small"}).status_code == 200
        assert len(frontend.get("/api/frontend", {"userId": "7"}).json()["toggles"]) == FLAGS
        assert len(admin.post("/api/admin/playground", question).json()["features"]) == FLAGS
    check_no_more_than_a_pass(counted)


def check_definitions_and_exports() -> None:
    with count_examined_rows() as counted:
        assert len(read_definitions(["large"], "production").flags) == FLAGS
        assert len(read_definitions(["large"], "production", flags=["large-7", "large-8"]).flags) == 2
        assert read_definitions(["small"], "production").flags
        assert len(read_all_definitions("production").flags) > FLAGS
        assert len(export_flags("production", project="large")["featureStrategies"]) == 2 * FLAGS
    check_no_more_than_a_pass(counted)
