"""Squashed migrations make the database that the migrations make which they replace, wherever those have got to."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from psycopg import sql

from flagadmin.core.db.migrate import has_unapplied_migrations, migrate

# All that PostgreSQL knows of our schema, as names and definitions, but for the order of columns.
CATALOG = {
    "tables": "SELECT relname, relkind, reloptions, relpersistence FROM pg_class WHERE relnamespace = 'public'::regnamespace",
    "columns": """
        SELECT attrelid::regclass::text, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated,
               attcollation::regcollation::text, attstorage, attcompression, attstattarget, attoptions,
               (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = attrelid AND adnum = attnum)
          FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
         WHERE relnamespace = 'public'::regnamespace AND relkind <> 'i' AND attnum > 0 AND NOT attisdropped""",
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), convalidated
          FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'""",  # those are of the columns
    "indexes": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "triggers": """
        SELECT pg_get_triggerdef(oid), tgenabled, obj_description(oid) FROM pg_trigger WHERE NOT tgisinternal""",
    "functions": "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
    "sequences": """
        SELECT sequencename, data_type::text, start_value, increment_by, max_value, cache_size, cycle,
               (SELECT (refobjid::regclass, attname)::text FROM pg_depend
                  JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid
                 WHERE objid = sequencename::regclass AND deptype IN ('a', 'i'))
          FROM pg_sequences WHERE schemaname = 'public'""",
    "extensions": "SELECT extname FROM pg_extension",
}
# What differs between any two new databases.
OF_ITS_OWN = {"id", "applied", "created_at", "valid_from", "instance_id", "content_type_id", "revision"}

Key = tuple[str, str]
Content = dict[str, Counter[str]]


@contextmanager
def _new_database(blocker: Any) -> Iterator[None]:
    """The connection uses an empty database meanwhile."""
    own = connection.settings_dict["NAME"]
    name = f"{own}_squashed"
    # With FORCE, it would need rights over a process of autovacuum, which it ends anyway.
    drop = sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name))
    given = connection.get_connection_params()
    where = {key: str(given[key]) for key in ("host", "port", "user", "password") if given.get(key)}
    with psycopg.connect(**where, dbname="postgres", autocommit=True) as server, blocker.unblock():
        server.execute(drop)
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            _use(name)
            yield
        finally:
            _use(own)
            server.execute(drop)


def _use(name: str) -> None:
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]
    connection.settings_dict["NAME"] = name


def _read_database() -> Content:
    """The lines of each part of the catalog and of each table."""
    with connection.cursor() as cursor:

        def read(query: str) -> Counter[str]:
            cursor.execute(query)
            columns = [column.name for column in cursor.description]
            rows = (sorted(zip(columns, map(str, row), strict=True)) for row in cursor.fetchall())
            return Counter(str([pair for pair in row if pair[0] not in OF_ITS_OWN]) for row in rows)

        tables = {table: f'SELECT * FROM "{table}"' for table in connection.introspection.table_names(cursor)}
        return {part: read(query) for part, query in (CATALOG | tables).items()}


def _old_plan() -> list[Key]:
    """The migrations of a version that had no squashed ones, in their order."""
    graph = MigrationLoader(None, replace_migrations=False).graph
    squashed = [migration for migration in graph.nodes.values() if migration.replaces]
    apps = {migration.app_label for migration in squashed}
    targets = {key for key in graph.leaf_nodes() if key[0] not in apps}
    targets.update(migration.replaces[-1] for migration in squashed)
    plan = list(dict.fromkeys(key for target in sorted(targets) for key in graph.forwards_plan(target)))
    assert not [key for key in plan if graph.nodes[key].replaces]
    return plan


def _migrate_old(until: Key) -> None:
    """Applies these up to one of them."""
    executor = MigrationExecutor(connection)
    executor.loader = MigrationLoader(connection, replace_migrations=False)
    executor.loader.replacements = {}
    plan = _old_plan()
    migrations = [(executor.loader.graph.nodes[key], False) for key in plan[: plan.index(until) + 1]]
    executor.migrate([until], plan=migrations, state=executor.loader.project_state(()))


@pytest.fixture(scope="module")
def new(django_db_setup: None, django_db_blocker: Any) -> Content:
    with _new_database(django_db_blocker):
        migrate()
        return _read_database()


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "until",
    [
        ("groups", "0001_initial"),
        ("groups", "0011_scim"),
        ("usersessions", "0001_initial"),  # all of them
    ],
    ids=".".join,
)
def test_the_schema_and_the_rows_are_the_same_wherever_the_old_migrations_stopped(
    until: Key, new: Content, django_db_blocker: Any
) -> None:
    with _new_database(django_db_blocker):
        _migrate_old(until)
        assert has_unapplied_migrations()
        migrate()
        assert not has_unapplied_migrations()
        found = _read_database()
    assert found.keys() == new.keys()
    for part, expected in new.items():
        assert (found[part] - expected, expected - found[part]) == ({}, {}), part
    assert all(new[part] for part in [*CATALOG, "groups_role", "projects_environment", "django_content_type"])


@pytest.mark.django_db
def test_what_is_left_of_the_old_migrations_is_applied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = _old_plan()
    for count in range(len(plan) + 1):
        applied = dict.fromkeys(plan[:count])
        monkeypatch.setattr(MigrationRecorder, "applied_migrations", lambda _, applied=applied: dict(applied))
        executor = MigrationExecutor(connection)
        executor.loader.check_consistent_history(connection)
        left = Counter(
            key
            for migration, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())
            for key in (migration.replaces or [(migration.app_label, migration.name)])
        )
        assert {key: left[key] for key in plan} == {key: key not in applied for key in plan}
