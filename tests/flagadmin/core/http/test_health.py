"""The liveness probe, and the readiness probe with database and migrations."""

import os
from collections import deque
from types import SimpleNamespace

import pytest
from django.db import OperationalError, connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from flagadmin.core.http import health
from flagadmin.core.http.error_responses import as_app_error


@pytest.mark.parametrize("path", ["/healthz", "/health"])
def test_healthz_asks_no_database(client: Client, path: str) -> None:
    assert client.get(path).json() == {"health": "GOOD"}


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/readyz", "/ready"])
def test_readyz_is_content_with_a_migrated_database(client: Client, path: str) -> None:
    assert client.get(path).json() == {"health": "GOOD"}


@pytest.mark.django_db
def test_readyz_names_migrations_that_are_missing(client: Client) -> None:
    last = MigrationRecorder.Migration.objects.filter(app="groups").latest("name")
    last.delete()
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["name"] == "ServiceUnavailableError"
    assert f"groups.{last.name}" in answer.json()["message"]


def test_readyz_says_when_the_database_is_gone(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*args: object) -> None:
        raise OperationalError("connection refused: secret host")

    monkeypatch.setattr(health, "MigrationExecutor", gone)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["name"]) == (503, "ServiceUnavailableError")
    assert b"secret host" not in answer.content


@pytest.fixture
def nothing_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_disk_full_errors", deque(maxlen=1))


def refused_with(sqlstate: str) -> OperationalError:
    """What the database itself answers."""
    with pytest.raises(OperationalError) as caught, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{sqlstate}'; END $$")
    return caught.value


@pytest.mark.django_db
def test_a_full_disk_is_named_and_the_server_not_ready(client: Client, nothing_refused: None) -> None:
    error = as_app_error(refused_with("53100"))
    assert (error.status, error.name) == (503, "ServiceUnavailableError")
    assert "database disk is full" in error.message
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "database disk is full" in answer.json()["message"]


@pytest.mark.django_db
def test_another_failure_of_the_database_is_no_full_disk(client: Client, nothing_refused: None) -> None:
    assert "disk" not in as_app_error(refused_with("53200")).message
    assert client.get("/readyz").status_code == 200


@pytest.mark.django_db
def test_not_ready_when_the_bundled_databases_disk_is_nearly_full(
    client: Client, monkeypatch: pytest.MonkeyPatch, nothing_refused: None
) -> None:
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "data_dir", "/")
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=1000, f_frsize=4096))
    assert "database disk is full" in client.get("/readyz").json()["message"]


PAGE, UNKNOWN, API = "/projects/shop/", "/nowhere", "/api/admin/search/features"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("table", "failing"),
    [
        ("projects_flag", [PAGE, API]),
        ("groups_apitoken", [API]),
        ("groups_user", [PAGE, UNKNOWN, API]),
        ("django_session", [PAGE, UNKNOWN]),
    ],
)
def test_a_missing_table_is_an_outage(browse, api, shop, table: str, failing: list[str], caplog) -> None:
    """A restore was interrupted, or another version set up the database: a retry may find it complete."""
    clients = {PAGE: browse("admin"), UNKNOWN: browse("admin"), API: api["admin"]}
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO elsewhere")
    answers = {}
    for path, client in clients.items():
        with transaction.atomic():
            answers[path] = client.get(path)
            transaction.set_rollback(True)
    assert [path for path, answer in answers.items() if answer.status_code == 503] == failing
    for path in failing:
        assert answers[path]["Retry-After"] == "5"
        assert b"lacks tables" in answers[path].content
    assert f'relation "{table}" does not exist' in caplog.text
    assert "Traceback" not in caplog.text  # a hundred a second would hide the cause
