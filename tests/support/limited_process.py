"""Runs Python code in a separate process with a memory limit and a time limit."""

import resource
import subprocess
import sys
from textwrap import dedent

from tests.support.paths import ROOT


def run_limited(code: str, *, megabytes: int, seconds: float) -> None:
    """Runs Python code. Raises AssertionError if it fails or exceeds the limit of address space or time."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * 2**20, megabytes * 2**20))

    try:
        done = subprocess.run(
            [sys.executable, "-c", dedent(code)],
            cwd=ROOT,
            preexec_fn=limit,
            timeout=seconds,
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise AssertionError(f"not done after {seconds} s: {(late.stdout or b'')[-200:]!r}") from None
    assert done.returncode == 0, done.stdout[-200:] + done.stderr[-2_000:]
