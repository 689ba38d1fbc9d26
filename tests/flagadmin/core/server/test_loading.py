"""What a worker loads before it serves: each process pays for it, in time to start and in memory."""

import os
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.processes

LATE = {"icalendar", "lark", "scim2_models"}  # loaded by the first request that needs them


OF_SERVERS = {
    "groups.console", "integrations.deliveries.sender", "playground.saved_contexts.guard", "pydantic", "releases.gate",
    "rest_framework.serializers", "sdk.watcher.watcher",
}  # fmt: skip


def test_packages_that_few_requests_need_are_loaded_late():
    assert not LATE & {
        name.partition(".")[0] for name in loaded_by("from flagadmin.worker import load; load()")
    }


def test_workers_import_little_after_they_are_forked():
    before = "from flagadmin.worker import load; load()"
    late = loaded_by(f"{before}; import flagadmin.rsgi") - loaded_by(before)
    assert len(late) < 25, late


def test_a_command_loads_little_of_what_servers_need():
    loaded = loaded_by("import flagadmin.command, django; django.setup()")
    assert "releases.models.plans" in loaded
    assert not OF_SERVERS & loaded


def loaded_by(code: str) -> set[str]:
    """The modules after this code, in a process of its own."""
    process = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"],
        cwd=ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "flagadmin.settings"},
        check=True,
        capture_output=True,
        text=True,
    )
    return set(process.stdout.split())
