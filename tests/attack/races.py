"""The same thing done by many at one moment: one of them wins, the others are told so, and nobody gets a fault."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.attack.calls import at_once
from tests.attack.installation import Installation
from tests.attack.result import Result

RUNNERS = 8
ADMIN, PROJECT = "/api/admin", "/api/admin/projects/checkout"

Call = tuple[str, str, Any]


def create_flag(turn: int) -> Call:
    return "POST", f"{PROJECT}/features", {"name": f"raced-{turn}"}


def create_segment(turn: int) -> Call:
    return "POST", f"{ADMIN}/segments", {"name": f"raced-{turn}", "constraints": []}


def create_context_field(turn: int) -> Call:
    return "POST", f"{ADMIN}/context", {"name": f"raced-{turn}"}


def create_project(turn: int) -> Call:
    return "POST", f"{ADMIN}/projects", {"id": f"raced-{turn}", "name": "Raced"}


def delete_project(turn: int) -> Call:
    return "DELETE", f"{ADMIN}/projects/raced-{turn}", None


def switch_flag(turn: int) -> Call:
    state = "on" if turn % 2 else "off"
    return "POST", f"{PROJECT}/features/dark-theme/environments/production/{state}", {}


# What is raced, and how many of the runners may succeed in one turn.
RACES = (
    (create_flag, 1), (create_segment, 1), (create_context_field, 1), (create_project, 1), (delete_project, 1),
    (switch_flag, RUNNERS),
)  # fmt: skip


def attacks(target: Installation, seconds: float) -> Iterator[Result]:
    turns = 0
    for race, winners in RACES:
        until, turn, statuses, odd = time.monotonic() + seconds / len(RACES), 0, Counter[int](), 0
        most = turns if race is delete_project else 10**6
        while time.monotonic() < until and turn < most:
            call = race(turn)
            found = at_once(RUNNERS, lambda _, call=call: target.call("admin", *call)[0])
            statuses.update(found)
            odd += sum(status < 300 for status in found) > winners or any(status >= 500 for status in found)
            turn += 1
        turns = turn if race is create_project else turns
        told = ", ".join(f"{count} × {status}" for status, count in sorted(statuses.items()))
        name = race.__name__.replace("_", " ")
        yield Result(
            f"a race to {name}", not odd and turn > 0, f"{turn} turns of {RUNNERS}, {odd} odd: {told}"
        )
