"""Attacks a server of its own, on 127.0.0.1 and with its own data, and tells in a table what held.

    python -m tests.attack [--minutes 6] [--seed 1] [--only NAME ...]

The exit status is 1 when anything fell.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator

from tests.attack import (
    approvals,
    archives,
    costs,
    crawler,
    described,
    doors,
    drifts,
    evaluations,
    external,
    judgements,
    kills,
    races,
    readers,
    relays,
    resources,
    watched,
)
from tests.attack.installation import Installation, installation
from tests.attack.result import Result, table

# Each attack's share of the time.
SHARES = {
    "resources": 0.12, "costs": 0.05, "evaluations": 0.12, "described": 0.16, "forms": 0.08, "races": 0.05, "backups": 0.02,
    "kills": 0.08, "external": 0.05, "readers": 0.06, "judgements": 0.08, "watched": 0.06, "archives": 0.03,
    "relays": 0.06, "approvals": 0.0, "drifts": 0.0, "doors": 0.0,
}  # fmt: skip


def manage(target: Installation, *arguments: str) -> subprocess.CompletedProcess:
    variables = os.environ | {"FLAGADMIN_DATA_DIR": str(target.folder)}
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, env=variables, capture_output=True, check=False)


def attacks(target: Installation, seconds: float, seed: int, only: Iterable[str]) -> Iterator[Result]:
    spans = {name: share * seconds for name, share in SHARES.items()}
    quiet = resources.quiet_p99(target, 10)
    yield Result("a quiet playground", True, f"p99 {quiet:.0f} ms")
    kinds: dict[str, Callable[[], Iterable[Result]]] = {
        "resources": lambda: resources.attacks(target, spans["resources"], quiet),
        "evaluations": lambda: evaluations.attacks(target, spans["evaluations"], quiet),
        "readers": lambda: readers.attacks(target, spans["readers"], quiet),
        "judgements": lambda: judgements.attacks(target, spans["judgements"], quiet),
        # After judgements, which would compare too much beside its 200 flags and be refused at once.
        "costs": lambda: costs.attacks(target, spans["costs"], quiet),
        "described": lambda: described.attacks(target, spans["described"], seed),
        "forms": lambda: crawler.attacks(target, spans["forms"], seed),
        "races": lambda: races.attacks(target, spans["races"]),
        "backups": lambda: [kills.backup_under_writers(target, spans["backups"], manage)],
        "kills": lambda: kills.attacks(target, spans["kills"], seed),
        "external": lambda: external.attacks(spans["external"], seed),
        "relays": lambda: relays.attacks(target, spans["relays"]),
        "watched": lambda: watched.attacks(spans["watched"]),
        "approvals": lambda: approvals.attacks(target),
        "drifts": lambda: drifts.attacks(target),
        "doors": lambda: doors.attacks(target),
        "archives": lambda: archives.attacks(seed, manage),
    }
    for name in only or kinds:
        yield from kinds[name]()
    if target.waits:
        yield resources.all_bystanders(target, quiet)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--minutes", type=float, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=SHARES, default=())
    options = parser.parse_args()
    results = []
    began = time.monotonic()
    print(
        f"{time.strftime('%Y-%m-%d %H:%M')}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f} before\n",
        flush=True,
    )
    with installation(FLAGADMIN_GUARD_PRODUCTION_TOKENS="1") as target:
        for result in attacks(target, options.minutes * 60, options.seed, options.only):
            results.append(result)
            print(table([result]), flush=True)
    fell = [result for result in results if not result.held]
    print(
        f"\n{table(results)}\n\n{len(results)} attacks in {(time.monotonic() - began) / 60:.0f} minutes, {len(fell)} fell"
    )
    return 1 if fell else 0


if __name__ == "__main__":
    sys.exit(main())
