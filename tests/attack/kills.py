"""Workers and the database are killed in the middle of imports: each import is there as a whole or not at all."""

import http.client
import json
import os
import random
import signal
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any

from tests.attack.installation import Installation
from tests.attack.result import Result
from tests.support.live_server import Client

FLAGS = 400
PATIENCE = 60  # seconds to answer again
PACE = 4.0  # seconds between kills: after more than 20 in a minute, `serve` ends, as in a crash loop


def body(number: int) -> dict[str, Any]:
    names = [f"kill-{number}-{index}" for index in range(FLAGS)]
    data = {
        "features": [{"name": name} for name in names],
        "featureStrategies": [{"name": "default", "featureName": name} for name in names],
        "tagTypes": [],
    }
    return {"project": "checkout", "environment": "production", "data": data}


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
    answered: list[int] = []

    def send() -> None:
        with (
            suppress(OSError, http.client.HTTPException),
            closing(Client(target.port, target.keys["admin"])) as client,
        ):
            answered.append(client.call("POST", "/api/admin/features-batch/import", body(number))[0])

    sending = threading.Thread(target=send)
    sending.start()
    sending.join(chosen.uniform(0.02, 1.0))
    kill(target, chosen)
    sending.join(PATIENCE)
    return answered == [200]


def wait_until_ready(target: Installation) -> float:
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE:
        with suppress(OSError, http.client.HTTPException), closing(Client(target.port)) as client:
            if client.call("GET", "/readyz")[0] == 200:
                break
        time.sleep(0.2)
    return time.monotonic() - began


def count(target: Installation, number: int) -> int:
    """Flags of this import that are there."""
    for _ in range(20):
        with (
            suppress(OSError, http.client.HTTPException),
            closing(Client(target.port, target.keys["admin"])) as client,
        ):
            status, answer = client.call("GET", "/api/admin/projects/checkout/features")
            if status == 200:
                names = [flag["name"] for flag in json.loads(answer)["features"]]
                return sum(name.startswith(f"kill-{number}-") for name in names)
        time.sleep(0.5)
    return -1


def backup_under_writers(
    target: Installation, seconds: float, manage: Callable[..., subprocess.CompletedProcess]
) -> Result:
    """Backups while flags are made: each is whole, and none stands in the writers' way."""
    over, written, failed, backups = threading.Event(), [0], [0], 0
    file = target.folder / "attack.backup"

    def write() -> None:
        with closing(Client(target.port, target.keys["admin"])) as client:
            while not over.is_set():
                flag = {"name": f"backed-{threading.get_ident()}-{written[0]}"}
                status, _ = client.call("POST", "/api/admin/projects/checkout/features", flag)
                written[0] += 1
                failed[0] += status >= 500

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    until, broken = time.monotonic() + seconds, 0
    while not backups or time.monotonic() < until:
        broken += manage(target, "backup", str(file)).returncode != 0 or file.stat().st_size == 0
        backups += 1
        file.unlink(missing_ok=True)
    over.set()
    for writer in writers:
        writer.join()
    figures = f"{backups} backups, {broken} broken; {written[0]} writes meanwhile, {failed[0]} failed"
    return Result("backups under writers", not broken and not failed[0], figures)
