"""Measures flags as code: pull, a plan of unchanged files, of one and of all changed, and applying all.

    python -m tests.benchmarks.bench_flags_as_code [FLAGS]

The commands are processes of their own, against a server of its own with one worker. Every flag has two strategies with
constraints in development and in production.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.bench_import import make_body, post
from tests.support.live_server import data_directory, running
from tests.support.paths import ROOT

IMPORT = "/api/admin/features-batch/import"
ROUNDS = 5


def run(*arguments: str, status: int = 0) -> float:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "flagadmin", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    assert done.returncode == status, (done.stdout + done.stderr)[-2000:]
    return seconds


def edit(paths: list[Path]) -> None:
    for path in paths:
        path.write_text(path.read_text().replace("type: release\n", "type: operational\n", 1))


def main(flags: int) -> None:
    with data_directory(), tempfile.TemporaryDirectory() as folder:
        from tests.support.cast import make_token

        key = make_token("admin")
        with running(workers=1) as port:
            os.environ |= {"FLAGADMIN_URL": f"http://127.0.0.1:{port}", "FLAGADMIN_TOKEN": key}
            body = make_body(flags)
            for environment in (b"development", b"production"):
                post(port, IMPORT, body.replace(b'"development"', b'"' + environment + b'"'), key)
            pulled = run("pull", folder, "--project", "default")
            unchanged = statistics.median(run("plan", folder) for _ in range(ROUNDS))
            files = sorted(Path(folder, "flags", "default").glob("*.yaml"))
            size = statistics.mean(path.stat().st_size for path in files)
            edit(files[:1])
            first = statistics.median(run("plan", folder, status=2) for _ in range(ROUNDS))
            edit(files[1:])
            every = run("plan", folder, status=2)
            applied = run("apply", folder)
            print(
                f"{len(files):,} files of {size:,.0f} bytes | pull {pulled:5.2f} s | plan: unchanged {unchanged:5.2f} s,"
                f" one changed {first:5.2f} s, all changed {every:5.2f} s | all applied {applied:5.2f} s"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000)
