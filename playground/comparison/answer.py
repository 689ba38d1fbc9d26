"""Compares two states for an API request."""

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Any, NotRequired

from groups.access import Caller
from playground.comparison.budget import Budget
from playground.comparison.compare import FlagReasons
from playground.comparison.documents import EXAMPLES, ComparisonDocument, make_comparison_document
from playground.comparison.request import read_question
from playground.comparison.states import add_children
from playground.comparison.who_changes import WhoChanges
from playground.saved_contexts.checks import ChangesDocument, make_changes_document
from playground.saved_contexts.effects import find_changed_expectations, list_expected_flags

BUDGET = Budget()
MAX_EXPLAINED = 200
"""The number of contexts whose reasons are counted if no result changes."""


class Answer(ComparisonDocument):
    """``expectations`` of saved contexts that break or are met again; ``notes`` on gaps in the data."""

    expectations: ChangesDocument
    notes: NotRequired[list[str]]


def answer_question(caller: Caller, body: Mapping[str, Any]) -> Answer:
    """The answer to a validated body (`CompareBody`). Raises ValidationError."""
    return compare_states(caller, body)[0]


def compare_states(caller: Caller, body: Mapping[str, Any]) -> tuple[Answer, WhoChanges]:
    """The same, with the underlying comparison."""
    question = read_question(caller, body, beside=lambda: list_expected_flags(caller), budget=BUDGET)
    pair, names = question.pair, question.names
    always = [body["flag"]] if "flag" in body else []
    who = WhoChanges(*pair.snapshots, question.contexts, names, budget=BUDGET, always=always)
    changed = find_changed_expectations(
        caller,
        *pair.snapshots,
        add_children(names, pair.snapshots),
        projects=pair.projects,
        instead=question.saved_contexts,
    )
    answer: Answer = {
        **make_comparison_document(who, saved=question.saved, limit=body.get("limit", EXAMPLES)),
        "expectations": make_changes_document(changed),
    }
    return ({**answer, "notes": question.notes} if question.notes else answer), who


def explain_nobody(who: WhoChanges, name: str) -> list[str]:
    """Explains why no result of the flag changes: the most frequent reasons of the later state, at most 3.

    Returns ["The flag is the same in both states."] if it is. Reads at most ``MAX_EXPLAINED`` contexts.
    """
    if who.comparison.is_same(name):
        return ["The flag is the same in both states."]
    comparison = who.compare(name).source
    reasons = FlagReasons(comparison.after, name)
    contexts = islice(comparison.table.contexts, MAX_EXPLAINED)
    return [reason for reason, _ in Counter(map(reasons.of, contexts)).most_common(3)]
