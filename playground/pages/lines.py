"""Presents changes: words and colors, and a line for each user whose result changes."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlencode

from django.urls import reverse

from playground.comparison.compare import Change, Example, Result
from playground.comparison.payloads import describe_difference
from playground.comparison.shares import Answer, Shares, drop_payloads
from playground.engine.context import Context
from playground.engine.outcomes import State
from playground.pages.query import CONTEXT
from playground.pages.tables import describe_share

MAX_FIELDS = 4
"""Fields of a context besides its user's id."""
Explain = Callable[[str, Mapping[str, str]], str]
"""The URL of a page that explains a flag's results for a context; "" if a URL cannot carry the context."""


class Look(NamedTuple):
    """The words and look of a change: classes of a pill, and of a part of a bar."""

    words: str
    pill: str
    slice: str


_CLASSES = {
    Change.OFF_TO_ON: ("on", "y"),
    Change.ON_TO_OFF: ("off", "n"),
    Change.VARIANT: ("variant", "v3"),
    Change.PAYLOAD: ("variant v2", "v1"),
    Change.SHARE: ("random", "v2"),
    Change.UNKNOWN: ("unknown", ""),
}
LOOKS = {change: Look(change.words, *classes) for change, classes in _CLASSES.items()}


class Count(NamedTuple):
    look: Look
    number: int


def count_looks(counts: Mapping[Change, int]) -> list[Count]:
    """Lists the changes that occur, with their numbers."""
    return [Count(look, number) for change, look in LOOKS.items() if (number := counts.get(change, 0))]


class Side(NamedTuple):
    """A user's result in one state, and the reason for it."""

    result: str
    words: str
    reason: str


class Who(NamedTuple):
    name: str
    rest: str


class Line(NamedTuple):
    """A context that gets a different result. ``link`` explains it, "" if nothing does."""

    who: Who
    before: Side
    after: Side
    link: str


def make_line(example: Example, context: Context, *, explain: Explain | None = None, name: str = "") -> Line:
    """``name`` is that of a saved context."""
    who = describe_user(context)
    if name:
        who = Who(name, f"{who.name} {who.rest}")
    link = explain(example.flag, context.fields) if explain else ""
    return Line(who, *make_sides(example.before, example.after), link)


def make_sides(before: Result, after: Result) -> tuple[Side, Side]:
    """Both sides, with their payloads if these are all that differs."""
    old, new = (_make_side(result) for result in (before, after))
    if old.words != new.words or drop_payloads(before.shares) != drop_payloads(after.shares):
        return old, new
    payloads = describe_difference(before.shares, after.shares)
    payload_texts = [f" · {payload}" if payloads[0] != payloads[1] else "" for payload in payloads]
    return old._replace(words=old.words + payload_texts[0]), new._replace(words=new.words + payload_texts[1])


def _make_side(result: Result) -> Side:
    state, words = _describe_result(drop_payloads(result.shares))
    return Side(state, words, result.reason)


def _describe_result(shares: Shares) -> tuple[str, str]:
    [(answer, _), *other_answers] = shares
    if not other_answers:
        return answer.state.value, answer_words(answer)
    states = {answer.state for answer, _ in shares}
    if State.UNKNOWN in states:
        return "unknown", "Can't tell"
    if states == {State.ON}:
        return "on", "On · random variant"
    return "random", describe_share(float(sum(share for answer, share in shares if answer.state is State.ON)))


def answer_words(answer: Answer) -> str:
    if answer.state is State.ON:
        return f"On · {answer.variant}" if answer.variant else "On"
    return "Off" if answer.state is State.OFF else "Can't tell"


def describe_user(context: Context) -> Who:
    """A user by id, with the other fields behind it."""
    fields = dict(context.fields)
    name = next((fields.pop(field) for field in ("userId", "sessionId") if fields.get(field)), "Anonymous")
    texts = [f"{field} {value or '(empty)'}" for field, value in sorted(fields.items())]
    rest = texts[:MAX_FIELDS] + ([f"{len(texts) - MAX_FIELDS} more"] if len(texts) > MAX_FIELDS else [])
    return Who(name, " · ".join(rest))


# Links ----------------------------------------------------------------------------------------------------------


def make_context_pairs(context: Mapping[str, str]) -> list[tuple[str, str]]:
    """A context as parameters of the playground's pages, none if they cannot say it."""
    if any("," in text or not text for text in context.values()):
        return []  # a comma would part the value
    return [(CONTEXT + field, text) for field, text in context.items()]


def explain_in(environments: Iterable[str]) -> Explain:
    """Links to the playground's page of one flag, which says what a context gets now."""
    places = [("environment", name) for name in environments]

    def url(flag: str, context: Mapping[str, str]) -> str:
        pairs = make_context_pairs(context)
        return f"{reverse('playground-flag', args=[flag])}?{urlencode([*places, *pairs])}" if pairs else ""

    return url


def explain_by(page: str) -> Explain:
    """Links to a page that evaluates a context in two states, such as before and after an import."""

    def url(flag: str, context: Mapping[str, str]) -> str:
        pairs = make_context_pairs(context)
        return f"{page}?{urlencode([*pairs, ('q', flag), ('show', 'all')])}" if pairs else ""

    return url
