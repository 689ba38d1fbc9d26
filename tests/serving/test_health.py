"""Probes: the process, and the database with its migrations."""

import pytest
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client


def test_healthz_asks_no_database(client: Client) -> None:
    assert client.get("/healthz").json() == {"health": "GOOD"}


@pytest.mark.django_db
def test_readyz_is_content_with_a_migrated_database(client: Client) -> None:
    assert client.get("/readyz").status_code == 200


@pytest.mark.django_db
def test_readyz_names_migrations_that_are_missing(client: Client) -> None:
    last = MigrationRecorder.Migration.objects.filter(app="groups").latest("name")
    last.delete()
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert f"groups.{last.name}" in answer.json()["unapplied"]
