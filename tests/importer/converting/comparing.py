"""Converted flags beside what the product's own evaluator gives, for random users."""

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from importer.converting.changes import make_definitions
from importer.converting.convert import Conversion, Exactness, Options, convert_file
from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.engine.outcomes import find_variant_name
from playground.response.snapshot import compile_playground

OFF = "off"
NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
User = Mapping[str, Any]
Evaluator = Callable[[str, User], Any]
"""What the product gives of a flag: a boolean, a value, or None for what the application has as default."""


def convert(document: Any, product: str = "", **options: Any) -> Conversion:
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    return convert_file(content, product=product, options=Options(**options))


def exactness_of(conversion: Conversion) -> dict[str, str]:
    return {flag.name: str(flag.exactness) for flag in conversion.flags}


def notes_of(conversion: Conversion, name: str) -> list[str]:
    return [note.sentence for flag in conversion.flags if flag.name == name for note in flag.notes]


def make_users(fields: Mapping[str, Sequence[Any]], count: int = 1000, seed: int = 7) -> list[dict[str, Any]]:
    """Users with a random value in each field; None leaves it out."""
    chance = random.Random(seed)
    users = []
    for number in range(count):
        user = {field: chance.choice(values) for field, values in fields.items()}
        users.append({"userId": f"user-{number}"} | {k: v for k, v in user.items() if v is not None})
    return users


def evaluate_here(conversion: Conversion, users: Iterable[User]) -> list[dict[str, Any]]:
    """By user what each flag gives here: off, on, or the value of the variant."""
    flags = [flag for flag in conversion.flags if flag.exactness is not Exactness.LEFT_OUT]
    definitions = make_definitions(flags, conversion.segments)
    snapshot = compile_playground(definitions.flags, definitions.segments, environment="").snapshot
    kept = []
    for user in users:
        evaluation = evaluate(snapshot, Context(dict(user)), now=NOW, random=random.Random(1).random)
        kept.append({flag.name: _result(evaluation, flag, outcome) for flag, outcome in evaluation.pairs()})
    return kept


def _result(evaluation: Any, flag: Any, outcome: Any) -> Any:
    if not outcome.on:
        return OFF
    name = find_variant_name(flag, outcome)
    if name is None:
        return True
    lists = [strategy.variants for strategy in flag.strategies if strategy.variants]
    payloads = {n: v.payload(i) for v in lists for i, n in enumerate(v.names)}
    kind, text = payloads[name] or ("", None)
    return text if kind in ("string", "") else json.loads(text)


def differences(conversion: Conversion, users: Sequence[User], evaluator: Evaluator) -> list[Any]:
    """(flag, user, there, here) of exact flags, where both are not the same."""
    exact = [flag for flag in conversion.flags if flag.exactness is Exactness.EXACT]
    assert exact
    here = evaluate_here(conversion, users)
    found = []
    for flag in exact:
        for user, results in zip(users, here, strict=True):
            there = evaluator(flag.name, user)
            there = OFF if there is None or (there is False and not flag.source.values) else there
            if there != results[flag.name] or type(there) is not type(results[flag.name]):
                found.append((flag.name, user, there, results[flag.name]))
    return found


def check_all_are_exact(conversion: Conversion, users: Sequence[User], evaluator: Evaluator) -> None:
    """No flag of the document needs a note, and each gives every user what the product gives."""
    inexact = {
        name: notes_of(conversion, name)
        for name, exactness in exactness_of(conversion).items()
        if exactness != "exact"
    }
    assert inexact == {}
    assert differences(conversion, users, evaluator) == []
