"""Compares results over many contexts with those of the engine for one context at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

from groups.access import Caller
from playground.comparison.draft import DraftState
from playground.comparison.results import Answer, Shares, StateResults
from playground.comparison.states import Scope, read_state
from playground.comparison.table import ContextTable
from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.engine.outcomes import find_chosen_variant, find_state
from playground.engine.snapshot import Snapshot
from tests.support.engine import NOW


def table_of(contexts: Iterable[Mapping[str, Any]]) -> ContextTable:
    return ContextTable([Context(context).at(NOW) for context in contexts])


def drafted(body: Mapping[str, Any], projects: Mapping[str, int]) -> DraftState:
    """The state that a body with a draft names. Raises ValidationError."""
    state = read_state(Caller.system(), body, "to").within(Scope(projects), "to")
    assert isinstance(state, DraftState)
    return state


def shares_of(snapshot: Snapshot, table: ContextTable, name: str) -> list[Shares]:
    """The result of a flag for each context."""
    shares_by_position: dict[int, Shares] = {}
    for shares, mask in StateResults(snapshot, table).results(name).items():
        for position in table.positions(mask):
            assert position not in shares_by_position, "a context has one result"
            shares_by_position[position] = shares
    return [shares_by_position[position] for position in range(len(table))]


def answer(snapshot: Snapshot, context: Mapping[str, Any], name: str, random: Callable[[], float]) -> Answer:
    """What the engine answers on one call."""
    evaluation = evaluate(snapshot, Context(context), now=NOW, random=random)
    flag, outcome = evaluation.pair(name)
    chosen = find_chosen_variant(flag, outcome)
    payload = None if chosen is None else chosen[0].payload(chosen[1])
    return Answer(find_state(flag, outcome), evaluation.variant(flag, outcome), payload)


def answers(snapshot: Snapshot, context: Mapping[str, Any], name: str, *, calls: int = 20) -> set[Answer]:
    """What the engine answers on some calls."""
    random = Random(0)
    return {answer(snapshot, context, name, random.random) for _ in range(calls)}


def drawn_shares(
    snapshot: Snapshot, context: Mapping[str, Any], name: str, sizes: Sequence[int]
) -> dict[Answer, Fraction]:
    """The share of every answer if the engine draws from places of these sizes, one after the other."""
    shares_of_answers: dict[Answer, Fraction] = {}
    each = Fraction(1)
    for size in sizes:
        each /= size
    for drawn in product(*map(_numbers, sizes)):
        numbers = iter(drawn)
        result = answer(snapshot, context, name, lambda numbers=numbers: next(numbers))
        assert next(numbers, None) is None, "the sizes are those of all that is drawn"
        shares_of_answers[result] = shares_of_answers.get(result, Fraction(0)) + each
    return shares_of_answers


def _numbers(size: int) -> Iterator[float]:
    return ((place + 0.5) / size for place in range(size))
