"""Comparisons in the API's format."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from typing import Literal, NotRequired, TypedDict

from flagadmin.core.errors import clip
from playground.comparison.compare import Change, Example, FlagComparison, Result
from playground.comparison.results import Answer
from playground.comparison.who_changes import FlagChanges, WhoChanges
from playground.engine.outcomes import State
from playground.models import SavedContext

EXAMPLES = 20
"""The default number of examples in an answer."""
MAX_VALUE = 1_000
"""Characters of a payload's value in an answer, which contains many payloads."""

Counts = dict[str, int]
"""Results by `Change`."""


class PayloadDocument(TypedDict):
    type: str
    value: str


class AnswerDocument(TypedDict):
    """The result that an application gets. The value of a long payload is truncated."""

    isEnabled: bool | Literal["unknown"]
    variant: str | None
    payload: PayloadDocument | None


class CountedAnswer(AnswerDocument):
    contexts: float


class SharedAnswer(AnswerDocument):
    share: float


class ResultDocument(TypedDict):
    results: list[SharedAnswer]
    reason: str


class FlagDocument(TypedDict):
    name: str
    counts: Counts
    before: list[CountedAnswer]
    after: list[CountedAnswer]


class ExampleDocument(TypedDict):
    flag: str
    context: Mapping[str, str]
    savedContext: NotRequired[str]
    change: str
    before: ResultDocument
    after: ResultDocument


class ComparisonDocument(TypedDict):
    contexts: int
    people: int
    counts: Counts
    flags: list[FlagDocument]
    examples: list[ExampleDocument]


def make_comparison_document(
    who: WhoChanges, *, saved: Sequence[SavedContext] = (), limit: int = EXAMPLES
) -> ComparisonDocument:
    """``saved`` are the first of the contexts, ``limit`` is the maximum number of examples."""
    counts = who.counts
    examples = ((example, flag) for flag in who.flags for example in who.examples(flag, limit=limit))
    return {
        "contexts": who.users,
        "people": who.affected,
        "counts": {change.value: counts[change] for change in Change},
        "flags": [_make_flag_document(flag.for_users) for flag in who.flags],
        "examples": [_make_example_document(*example, saved) for example in islice(examples, limit)],
    }


def answer_document(answer: Answer) -> AnswerDocument:
    payload = answer.payload
    return {
        "isEnabled": "unknown" if answer.state is State.UNKNOWN else answer.state is State.ON,
        "variant": answer.variant,
        "payload": payload and {"type": payload[0], "value": clip(payload[1], MAX_VALUE)},
    }


def make_result_document(result: Result) -> ResultDocument:
    return {
        "results": [{**answer_document(answer), "share": float(share)} for answer, share in result.shares],
        "reason": result.reason,
    }


def _make_flag_document(flag: FlagComparison) -> FlagDocument:
    return {
        "name": flag.name,
        "counts": {change.value: flag.count(change) for change in Change},
        "before": list(_count_documents(flag.before)),
        "after": list(_count_documents(flag.after)),
    }


def _count_documents(counts: Mapping[Answer, Fraction]) -> Iterator[CountedAnswer]:
    for answer, contexts in counts.items():
        yield {**answer_document(answer), "contexts": float(contexts)}


def _make_example_document(
    example: Example, flag: FlagChanges, saved: Sequence[SavedContext]
) -> ExampleDocument:
    document: ExampleDocument = {
        "flag": example.flag,
        "context": flag.source.table.contexts[example.position].fields,
        "change": example.change.value,
        "before": make_result_document(example.before),
        "after": make_result_document(example.after),
    }
    if example.position < len(saved):
        document["savedContext"] = saved[example.position].name
    return document
