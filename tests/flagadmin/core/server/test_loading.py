"""What a worker loads before it serves: each process pays for it, in time to start and in memory."""

import subprocess
import sys

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.processes

LATE = {"icalendar", "lark", "scim2_models"}  # loaded by the first request that needs them


def test_packages_that_few_requests_need_are_loaded_late():
    loads = (
        f"import sys, flagadmin.worker; print(*({LATE!r} & {{name.split('.')[0] for name in sys.modules}}))"
    )
    process = subprocess.run(
        [sys.executable, "-c", loads], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert process.stdout.split() == []
