"""Workers and the database are killed in the middle of imports: each import is there as a whole or not at all."""

import json
import os
import random
import signal
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any

from tests.attack.calls import imported
from tests.attack.installation import Installation
from tests.attack.result import Result

FLAGS = 400
PATIENCE = 60  # seconds to answer again
PACE = 4.0  # seconds between kills: after more than 20 in a minute, `serve` ends, as in a crash loop


def body(number: int) -> dict[str, Any]:
    return imported([f"kill-{number}-{index}" for index in range(FLAGS)])


def kill_a_worker(target: Installation, chosen: random.Random) -> None:
    """Any process but the one that keeps the others."""
    workers = [pid for pid in target.processes() if pid != target.group]
    if workers:
        with suppress(ProcessLookupError):
            os.kill(chosen.choice(workers), signal.SIGKILL)


def kill_the_database(target: Installation, chosen: random.Random) -> None:
    with suppress(FileNotFoundError):  # not started again yet
        _kill_the_database(target)


def _kill_the_database(target: Installation) -> None:
    first_line = (target.folder / "postgres" / "postmaster.pid").read_text().splitlines()[0]
    with suppress(ProcessLookupError):
        os.kill(int(first_line), signal.SIGKILL)


def attacks(target: Installation, seconds: float, seed: int) -> Iterator[Result]:
    yield interrupted_imports(target, "kills of a worker", kill_a_worker, seconds * 0.4, seed)
    yield interrupted_imports(target, "kills of the database", kill_the_database, seconds * 0.6, seed)


def interrupted_imports(
    target: Installation,
    name: str,
    interrupt: Callable[[Installation, random.Random], None],
    seconds: float,
    seed: int,
) -> Result:
    """Imports, one after the other, each interrupted at some moment."""
    chosen = random.Random(seed)
    offset = zlib.crc32(name.encode()) % 1000 * 1000
    interruptions = done = torn = lost = 0
    slowest, until = 0.0, time.monotonic() + seconds
    while slowest < PATIENCE and time.monotonic() < until:
        next_kill = time.monotonic() + PACE
        accepted = import_and_kill(target, offset + interruptions, interrupt, chosen)
        slowest = max(slowest, wait_until_ready(target))
        stored = count(target, offset + interruptions)
        interruptions += 1
        if stored < 0:  # nobody can tell any more
            slowest = PATIENCE
            break
        done += stored == FLAGS
        torn += stored not in (0, FLAGS)
        lost += accepted and stored != FLAGS
        time.sleep(max(0.0, next_kill - time.monotonic()))
    held = not torn and not lost and slowest < PATIENCE and interruptions > 0
    figures = f"{interruptions} imports interrupted: {done} done, {torn} torn, "
    figures += f"{lost} acknowledged and lost; ready again after {slowest:.1f} s at most"
    return Result(f"{name} during imports", held, figures)


def import_and_kill(
    target: Installation,
    number: int,
    kill: Callable[[Installation, random.Random], None],
    chosen: random.Random,
) -> bool:
    """Whether the import was answered as done."""
    with ThreadPoolExecutor(1) as thread:
        sent = thread.submit(target.call, "admin", "POST", "/api/admin/features-batch/import", body(number))
        wait([sent], chosen.uniform(0.02, 1.0))
        kill(target, chosen)
        return sent.result()[0] == 200


def wait_until_ready(target: Installation) -> float:
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE and target.call("", "GET", "/readyz")[0] != 200:
        time.sleep(0.2)
    return time.monotonic() - began


def count(target: Installation, number: int) -> int:
    """Flags of this import that are there."""
    for _ in range(20):
        status, answer = target.call("admin", "GET", "/api/admin/projects/checkout/features")
        if status == 200:
            names = [flag["name"] for flag in json.loads(answer)["features"]]
            return sum(name.startswith(f"kill-{number}-") for name in names)
        time.sleep(0.5)
    return -1


def backup_under_writers(
    target: Installation, seconds: float, manage: Callable[..., subprocess.CompletedProcess]
) -> Result:
    """Backups while flags are made: each is whole, and none stands in the writers' way."""
    over, broken, file = threading.Event(), list[bool](), target.folder / "attack.backup"

    def write(number: int) -> list[int]:
        statuses: list[int] = []
        while not over.is_set():
            flag = {"name": f"backed-{number}-{len(statuses)}"}
            statuses.append(target.call("admin", "POST", "/api/admin/projects/checkout/features", flag)[0])
        return statuses

    with ThreadPoolExecutor(3) as threads:
        writers = [threads.submit(write, number) for number in range(3)]
        until = time.monotonic() + seconds
        while not broken or time.monotonic() < until:
            broken.append(manage(target, "backup", str(file)).returncode != 0 or file.stat().st_size == 0)
            file.unlink(missing_ok=True)
        over.set()
    statuses = [status for writer in writers for status in writer.result()]
    failed = sum(status >= 500 for status in statuses)
    figures = (
        f"{len(broken)} backups, {sum(broken)} broken; {len(statuses)} writes meanwhile, {failed} failed"
    )
    return Result("backups under writers", not any(broken) and not failed, figures)
