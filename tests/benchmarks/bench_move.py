"""Measures a move from a made-up Unleash on this machine: plan, apply, the same again, and the proof.

    python -m tests.benchmarks.bench_move [FLAGS [USERS]]

5,000 flags of 3 projects in 3 environments and 40 tokens, all steps in one process. The server that replays the recording is another,
in Python: the real one is not faster. Then the proof of flags that are all written otherwise, which must be evaluated,
without fetching.
"""

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from tests.support.live_server import data_directory

PROJECTS = 3
TOKENS = 40
EVALUATED = 1_000


def main() -> None:
    flags = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    users = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    spawned = get_context("spawn")
    here, there = spawned.Pipe()
    server = spawned.Process(target=serve, args=(flags, there), daemon=True)
    server.start()
    with data_directory():
        address = here.recv()
        print(f"{flags:,} flags of {PROJECTS} projects; {peak()} MB before")
        whole = time.perf_counter()
        for step in ("plan", "apply", "plan"):
            with timed(step):
                run(step, address)
        with timed(f"prove, {users:,} users"):
            run("prove", address, "--users", str(users))
        print(f"in all: {time.perf_counter() - whole:.1f} s")
        server.terminate()
        evaluate(users)


def serve(flags: int, pipe: Connection) -> None:
    from tests.support.generated_unleash import make_recording
    from tests.support.recorded_unleash import replayed

    with replayed(make_recording(flags, PROJECTS, TOKENS - 15, people=60)) as replay:
        pipe.send(replay.address)
        pipe.poll(None)


def evaluate(users: int) -> None:
    """Compares flags of one token that are all written otherwise."""
    from django.utils import timezone

    from importer.moving.proving.answers import Client, People, TokenProof, read_flags
    from importer.moving.proving.prove import compare
    from tests.support.generated_unleash import make_recording

    recording = make_recording(PROJECTS * (EVALUATED + 1), PROJECTS)
    answer = next(r["answer"] for r in recording["requests"] if r["path"] == "/api/client/features")
    there: Any = {"features": answer["features"][:EVALUATED], "segments": answer["segments"]}
    before, after = (read_flags("", Client.model_validate(there)) for _ in range(2))
    for flag in after.values():
        flag["strategies"][0]["parameters"]["rollout"] = "50"
    people = People([], users, timezone.now())
    proof = TokenProof("bench", "production")
    with timed(f"evaluate {len(before):,} flags for {users:,} users"):
        compare(proof, before, after, people)
    print(f"{len(proof.differences):,} flags differ")


def run(step: str, address: str, *options: str) -> None:
    from django.core.management import call_command

    from tests.support.recorded_unleash import ADMIN

    with open("/dev/null", "w") as nowhere:
        try:
            call_command("move", step, "--from", address, "--token", ADMIN, *options, stdout=nowhere)
        except SystemExit:
            if step != "plan":
                raise


@contextmanager
def timed(what: str) -> Iterator[None]:
    begun, used = time.perf_counter(), time.process_time()
    yield
    seconds, cpu = time.perf_counter() - begun, time.process_time() - used
    print(f"{what}: {seconds:.1f} s, of which {cpu:.1f} s CPU of this process, {peak()} MB", flush=True)


def peak() -> int:
    """Megabytes of this process at its largest."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_000


if __name__ == "__main__":
    main()
