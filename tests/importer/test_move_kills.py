"""`manage.py move apply` that is killed while it writes: nothing of it is here, and the next one does all of it."""

import os
import signal
from multiprocessing import get_context
from typing import Any

import pytest
from django.db import connection, transaction

from flagadmin.core.audit.models import AuditEvent
from groups.models import ApiToken, User
from importer.models import ImportRun
from importer.moving.reading import source
from projects.models import Environment, Flag, Project, Segment
from tests.support.generated_unleash import make_recording
from tests.support.live_server import PATIENCE, wait_until
from tests.support.moving import apply_in, run_step
from tests.support.recorded_unleash import replayed

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True), pytest.mark.exhaustive]
WRITTEN = ("projects_segment", "projects_flag", "groups_apitoken")
"""In the order in which a move writes these tables."""


def count_rows() -> list[int]:
    tables: tuple[Any, ...] = (Environment, Project, Segment, Flag, ApiToken, User, ImportRun, AuditEvent)
    return [table.objects.count() for table in tables]


def is_waited_for(table: str) -> bool:
    with connection.cursor() as cursor:
        query = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = %s::regclass"
        cursor.execute(query, [table])
        return bool(cursor.fetchone()[0])


def kill_while_it_writes(table: str, address: str) -> None:
    """Nobody can write the table meanwhile, so the move stands before its first row there."""
    arguments = (connection.settings_dict["NAME"], address)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {table} IN SHARE MODE")
        process = get_context("spawn").Process(target=apply_in, args=arguments, daemon=True)
        process.start()
        try:
            wait_until(lambda: is_waited_for(table))
        finally:
            os.kill(process.pid or 0, signal.SIGKILL)
            process.join(PATIENCE)


def test_a_move_that_is_killed_leaves_nothing(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "WAIT", 0)
    before = count_rows()
    with replayed(make_recording(6)) as replay:
        for table in WRITTEN:
            kill_while_it_writes(table, replay.address)
            assert count_rows() == before, table
        status, text = run_step("apply", replay.address, capsys)
        assert (status, Flag.objects.count()) == (0, 6), text
        assert run_step("plan", replay.address, capsys)[0] == 0
