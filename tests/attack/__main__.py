"""Attacks a server of its own, on 127.0.0.1 and with its own data, and tells in a table what held.

    python -m tests.attack [--minutes 25] [--seed 1] [--only NAME ...]

The exit status is 1 when anything fell.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator

from tests.attack import crawler, described, evaluations, external, kills, races, resources
from tests.attack.installation import Installation, installation
from tests.attack.result import Result, table

# Each attack's share of the time.
SHARES = {
    "resources": 0.2, "evaluations": 0.15, "described": 0.3, "forms": 0.1, "races": 0.06, "backups": 0.03,
    "kills": 0.1, "external": 0.06,
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
        "described": lambda: described.attacks(target, spans["described"], seed),
        "forms": lambda: crawler.attacks(target, spans["forms"], seed),
        "races": lambda: races.attacks(target, spans["races"]),
        "backups": lambda: [kills.backup_under_writers(target, spans["backups"], manage)],
        "kills": lambda: kills.attacks(target, spans["kills"], seed),
        "external": lambda: external.attacks(spans["external"], seed),
    }
    for name in only or kinds:
        yield from kinds[name]()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=SHARES, default=())
    options = parser.parse_args()
    results = []
    began = time.monotonic()
    print(
        f"{time.strftime('%Y-%m-%d %H:%M')}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f} before\n",
        flush=True,
    )
    with installation() as target:
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
