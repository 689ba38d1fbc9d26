"""Which change did this: how often the right one is first, and what it costs.

40 changes of 20 flags, 100,000 users of whom 200 are affected: 150 who noticed one of the changes, and 50 who are noise.

``python -m tests.benchmarks.bench_incident [SEEDS] [USERS]`` (default: 100 seeds with 10,000 users; 100,000 users once)
"""

import os
import resource
import sys
import time
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

START = datetime(2026, 1, 1, tzinfo=UTC)
FLAGS, CHANGES, AFFECTED, NOISE = 20, 40, 150, 50


def make_state(name: str, percent: int) -> Any:
    strategy = {
        "id": name,
        "name": "flexibleRollout",
        "parameters": {"rollout": str(percent), "stickiness": "default", "groupId": name},
        "constraints": [],
        "segments": [],
        "variants": [],
        "disabled": False,
    }
    members = {"impression_data": False, "stale": False, "variants": [], "dependencies": []}
    return {"name": name, "project": "shop", "enabled": True, "strategies": [strategy]} | members


def make_histories(random: Random) -> list[Any]:
    """Each flag is at some percentage, and changes twice by 5 to 40 %."""
    from playground.comparison.states import compile_definitions
    from playground.outcomes.history import FlagHistory
    from projects.definitions import Definitions

    histories = []
    for number in range(FLAGS):
        name, percent = f"f{number}", random.randrange(0, 100)
        states = [make_state(name, percent)]
        for _ in range(CHANGES // FLAGS):
            step = random.randrange(5, 41)
            percent = percent + step if percent + step <= 100 else percent - step
            states.append(make_state(name, percent))
        moments = [START + timedelta(minutes=number * 10 + 300 * place) for place in range(len(states))]
        snapshots = compile_definitions("production", *(Definitions([state], {}) for state in states))
        histories.append(FlagHistory(name, [START, *moments[1:]], list(snapshots), [""] * len(states)))
    return histories


def main(seeds: int, users: int) -> None:
    from flagadmin.core.http.responses import iso
    from playground.comparison.compare import CHANGES as NOTICED
    from playground.outcomes.history import Window
    from playground.outcomes.incident import Users, _compare_states, rank_changes

    window = Window(START, START + timedelta(days=1))

    def group(ids: Any) -> Users:
        return Users(["userId"], [[user] for user in ids])

    def try_one(seed: int, count: int) -> tuple[bool, float]:
        """Whether the change is first, and the seconds of CPU."""
        random = Random(seed)
        histories = make_histories(random)
        everybody = [f"{random.randrange(10**9)}" for _ in range(count)]
        history, place = random.choice(histories), random.randrange(1, CHANGES // FLAGS + 1)
        table = group(everybody).table(window.until)
        changes = dict(_compare_states(history, table))[history.moments[place]]
        noticed = [everybody[row] for kind in NOTICED for row in table.positions(changes.get(kind, 0))]
        affected = {*random.sample(noticed, min(AFFECTED, len(noticed))), *random.sample(everybody, NOISE)}
        others = [user for user in everybody if user not in affected]
        began = time.process_time()
        first = rank_changes(histories, window, (group(affected), group(others)))[0]
        return first["at"] == iso(history.moments[place]), time.process_time() - began

    right = sum(try_one(seed, 10_000)[0] for seed in range(seeds))
    print(f"{seeds} seeds with 10,000 users: the right change is first in {right}")
    held, seconds = try_one(0, users)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{users:,} users: {seconds:.1f} s of CPU, {memory} MB, right: {held}")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django

    django.setup()
    numbers = [int(each) for each in sys.argv[1:]]
    main(*(numbers + [100, 100_000][len(numbers) :]))
