"""What an editor stores, as much as one flag takes, evaluated for a stranger with no more than a frontend key."""

import random
from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.attack.installation import Installation
from tests.attack.resources import Attacked, beside, frontend, repeat
from tests.attack.result import Result

PROJECT = "/api/admin/projects/legacy-portal/features"  # not the one that the bystander asks about
CONSTRAINTS, STRATEGIES, VALUES, VALUE_LENGTH = 30, 30, 250, 100  # as the settings have them
FIELD = "region"  # any value is legal
_chance = random.Random(1)


def letters(length: int) -> str:
    """By chance, but the last fifty, so that a pattern for these has to be looked for to the end."""
    return "".join(_chance.choices("ab", k=length - 50)) + "a" * 50


DIGITS = "9" * 100_000


def one(operator: str, value: str) -> dict[str, Any]:
    return {"contextName": FIELD, "operator": operator, "value": value}


def many(operator: str, values: list[str]) -> dict[str, Any]:
    return {"contextName": FIELD, "operator": operator, "values": values, "inverted": True}


# The constraint, and the texts that it is evaluated with, one after the other.
STORED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "a small regular expression": (one("REGEX", "^[ab]*a[ab]{20}$"), (letters(10_000), letters(100_000))),
    "a regular expression": (one("REGEX", "^[ab]*a[ab]{49}(?:[ab]{200})?$"), (letters(1_000), letters(10_000))),
    "a large regular expression": (
        one("REGEX", "^[ab]*a[ab]{49}(?:" + "[ab]{1000}" * 4 + ")?$"), (letters(100), letters(1_000)),
    ),
    "groups": (one("REGEX", "(a)" * 600), ("a" * 1_000, "a" * 100_000)),
    "letters of texts": (
        many("STR_CONTAINS", ["a" * (VALUE_LENGTH - 9) + f"b{n:08}" for n in range(VALUES)]), ("a" * 100_000,)
    ),
    "numbers": (one("NUM_LT", "1" * 90), (DIGITS, "9" * 400, "1e" + DIGITS, DIGITS + "x")),
    "dates": (one("DATE_AFTER", "2026-11-21T09:00:00.000Z"), (f"2026-11-21T09:00:00.{DIGITS[:90_000]}Z", DIGITS)),
    "versions": (one("SEMVER_GT", "1.2.3"), ("1.0.0-" + "a." * 45_000, "1.0.0-" + "0" * 90_000, "1." * 45_000)),
    "addresses": (
        many("IN_CIDR", [f"10.{n}.0.0/16" for n in range(VALUES)]), ("1." * 45_000, ":" * 90_000, "10.250.255.255"),
    ),
}  # fmt: skip


def attacks(target: Installation, seconds: float, quiet: float) -> Iterator[Result]:
    each = seconds / len(STORED)
    for number, (name, (constraint, texts)) in enumerate(STORED.items()):
        flag = f"attack-{number}"
        refused = store(target, flag, constraint)
        if refused:
            yield Result(f"900 × {name}", refused.startswith("400"), f"refused when stored: {refused}")
            continue
        yield beside(f"900 × {name}", target, quiet, partial(evaluate, target, texts, each))
        target.call("editor", "POST", f"{PROJECT}/{flag}/environments/production/off", {})


def evaluate(target: Installation, texts: tuple[str, ...], seconds: float) -> Attacked:
    found = Attacked()
    for text in texts:
        repeat(target, frontend(properties={FIELD: text}), seconds / len(texts), found)
    return found


def store(target: Installation, flag: str, constraint: dict[str, Any]) -> str:
    """A flag that is full of this constraint, on in production. Answers why it was refused, if it was."""
    place = f"{PROJECT}/{flag}/environments/production"
    strategy = {"name": "default", "constraints": [constraint] * CONSTRAINTS}
    for path, body in (
        (PROJECT, {"name": flag}),
        *[(f"{place}/strategies", strategy)] * STRATEGIES,
        (f"{place}/on", {}),
    ):
        status, answer = target.call("editor", "POST", path, body)
        if status >= 300:
            return f"{status} {answer.decode()[-300:]}"
    return ""
