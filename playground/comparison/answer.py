"""Compares two states for a request of the API."""

from collections.abc import Mapping
from typing import Any, NotRequired

from groups.access import Caller
from playground.comparison.budget import Budget
from playground.comparison.documents import EXAMPLES, ComparisonDocument, make_comparison_document
from playground.comparison.request import read_question
from playground.comparison.states import add_children
from playground.comparison.who_changes import WhoChanges
from playground.saved_contexts.effects import find_changed_expectations, list_expected_flags
from playground.saved_contexts.report import ChangesDocument, make_changes_document

BUDGET = Budget()


class Answer(ComparisonDocument):
    """``expectations`` are those of saved contexts that break or are met again, ``notes`` what is not known."""

    expectations: ChangesDocument
    notes: NotRequired[list[str]]


def answer_question(caller: Caller, body: Mapping[str, Any]) -> Answer:
    """The answer to a validated body (`CompareBody`). Raises ValidationError."""
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
    return {**answer, "notes": question.notes} if question.notes else answer
