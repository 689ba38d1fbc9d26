"""The recorded tables of an Unleash, loaded into a scratch database of the server that tests use."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import psycopg
from django.db import connection
from psycopg import sql
from psycopg.types.json import Json

# Tables that were empty, so that nothing was recorded of them.
EMPTY = """
CREATE TABLE groups (id int, name text, description text, mappings_sso jsonb, root_role_id int);
CREATE TABLE group_user (group_id int, user_id int);
CREATE TABLE group_role (group_id int, role_id int, project text);
CREATE TABLE favorite_features (feature text, user_id int);
CREATE TABLE favorite_projects (project text, user_id int);
CREATE TABLE personal_access_tokens (
    secret text, description text, user_id int, expires_at timestamptz, seen_at timestamptz);
CREATE TABLE client_metrics_env_daily (
    feature_name text, app_name text, environment text, date date, yes bigint, no bigint);
CREATE TABLE client_metrics_env_variants_daily (
    feature_name text, app_name text, environment text, date date, variant text, count int);
ALTER TABLE api_tokens ADD COLUMN verifier text;
UPDATE features SET created_at = now() - interval '1 year';
UPDATE client_metrics_env SET timestamp = date_trunc('hour', now()) - interval '3 hours';
UPDATE client_metrics_env_variants SET timestamp = date_trunc('hour', now()) - interval '3 hours';
"""


@contextmanager
def loaded(tables: dict[str, Any]) -> Iterator[tuple[str, psycopg.Connection[Any]]]:
    """The URL of the database, and a connection for changes to it."""
    name = f"{connection.settings_dict['NAME']}_unleash"
    given = connection.get_connection_params()
    where = {key: str(given[key]) for key in ("host", "port", "user", "password") if given.get(key)}
    with psycopg.connect(**where, dbname="postgres", autocommit=True) as server:
        drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        server.execute(drop)
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            with psycopg.connect(**where, dbname=name, autocommit=True) as database:
                for table, content in tables.items():
                    _load(database, table, content)
                database.execute(EMPTY)
                yield f"postgresql:///{name}?{urlencode(where)}", database
        finally:
            server.execute(drop)


def _load(database: psycopg.Connection[Any], table: str, content: dict[str, Any]) -> None:
    types = {column["column"]: column["type"] for column in content["columns"]}
    columns = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(type_)) for name, type_ in types.items()
    )
    database.execute(sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(table), columns))
    insert = sql.SQL("INSERT INTO {} VALUES ({})").format(
        sql.Identifier(table), sql.SQL(", ").join([sql.Placeholder()] * len(types))
    )
    rows = [[_value(row[name], type_) for name, type_ in types.items()] for row in content["rows"]]
    with database.cursor() as cursor:
        cursor.executemany(insert, rows)


def _value(value: Any, type_: str) -> Any:
    return Json(value) if type_.startswith("json") and value is not None else value
