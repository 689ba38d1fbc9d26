"""The admin site's pages are loaded by what needs them."""

import subprocess
import sys

import pytest
from django.contrib import admin
from django.core.checks import run_checks

from projects.models import Flag

SCRIPT = """
import sys
import django
django.setup()
from django.core.management import call_command
before = "projects.flags.admin" in sys.modules
call_command("check")
print(before, "projects.flags.admin" in sys.modules)
"""


@pytest.mark.processes
def test_commands_load_no_pages_except_the_check() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.stdout.split()[-2:] == ["False", "True"], done.stderr


def test_the_check_checks_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(admin.site._registry[Flag]), "search_fields", "name")
    assert [message.id for message in run_checks(tags=["admin"])] == ["admin.E126"]
