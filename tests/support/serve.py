"""Runs `manage.py serve` in a separate process, as an operator would."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.live_server import PATIENT, is_ready, wait_until
from tests.support.paths import ROOT


def environment(data_dir: Path, **more: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FLAGADMIN_", "INIT_", "DJANGO_"))
        and name not in ("DATABASE_URL", "SECRET_KEY")
    }
    own = {
        "FLAGADMIN_DATA_DIR": str(data_dir),
        "FLAGADMIN_DATABASE_DURABLE": "0",
        # Otherwise each server compiles all modules again, where the environment forbids keeping them (see the Makefile).
        "PYTHONDONTWRITEBYTECODE": "",
    }
    return kept | PATIENT | own | more


@contextmanager
def serve(
    data_dir: Path, port: int, command: str = "serve", *, workers: int = 2, code: Path = ROOT, **more: str
) -> Iterator[subprocess.Popen[str]]:
    """Starts the server in its own process group, and ends the whole group when the context ends.

    ``code`` is a checkout, of another version for example.
    """
    with subprocess.Popen(
        [sys.executable, "manage.py", command, "--port", str(port), "--workers", str(workers)],
        cwd=code,
        env=environment(data_dir, **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def wait_until_it_answers(port: int, process: subprocess.Popen[str]) -> None:
    wait_until(lambda: is_ready(port) or process.poll() is not None)
    assert process.poll() is None, process.stdout and process.stdout.read()
