"""Probes: the process, and the database with its migrations."""

import pytest
from django.db import OperationalError
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from flagadmin import health


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
