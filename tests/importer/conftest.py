"""Fixtures for the tests of moves."""

import json

import pytest
from django.core.management import call_command

from importer.moving.reading import source
from tests.support.demo import made_once
from tests.support.generated_unleash import make_recording
from tests.support.moving import run_step
from tests.support.recorded_unleash import ADMIN, replayed


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Runs a step. Returns its exit status, what it printed, and its report."""
    monkeypatch.setattr(source, "WAIT", 0)
    monkeypatch.delenv("UNLEASH_TOKEN", raising=False)

    def run(step, replay, *options):
        report = tmp_path / "report.json"
        report.unlink(missing_ok=True)
        status, text = run_step(step, replay.address, capsys, "--report", str(report), *options)
        return status, text, json.loads(report.read_bytes()) if report.exists() else None

    return run


@pytest.fixture(scope="module")
def moved(django_db_setup, django_db_blocker):
    """A server whose 32 flags have moved here, once for all tests of the module."""
    with replayed(make_recording(32)) as replay:
        command = ("move", "apply", "--from", replay.address, "--token", ADMIN)
        with made_once(lambda: call_command(*command), django_db_blocker):
            yield replay
