"""How pages show what an edit changes."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from flagadmin.core.lists.charts import Slice, answer_slices, percent_text
from playground.comparison.compare import Change, Result
from playground.comparison.impact import Impact
from playground.comparison.payloads import differing_words
from playground.comparison.shares import Answer, Shares, without_payloads
from playground.engine.context import Context
from playground.engine.outcomes import State
from playground.pages.tables import share_of_calls

KINDS = {
    Change.OFF_TO_ON: ("on", "off → on"),
    Change.ON_TO_OFF: ("off", "on → off"),
    Change.VARIANT: ("variant", "another variant"),
    Change.PAYLOAD: ("variant v2", "another payload"),
    Change.SHARE: ("random", "another share of calls"),
    Change.UNKNOWN: ("unknown", "only an SDK can tell"),
}
COLORS = ("v1", "v2", "v3")
MAX_FIELDS = 4


class Count(NamedTuple):
    color: str
    number: int
    text: str


class Bar(NamedTuple):
    """The answers that the sampled users get in one state."""

    label: str
    slices: Sequence[Slice]
    on: int
    percent: str


class Side(NamedTuple):
    """What a user gets in one state, and why."""

    result: str
    words: str
    reason: str


class Who(NamedTuple):
    name: str
    rest: str


class Line(NamedTuple):
    """One of those who get something else."""

    who: Who
    before: Side
    after: Side
    link: str


class ImpactView:
    """An impact as templates show it. `explain` gives the URL of a page that explains the flag for a context."""

    def __init__(
        self, impact: Impact, *, is_new: bool, explain: Callable[[Impact, Context], str] | None
    ) -> None:
        self.flag, self.environment, self.is_new = impact.flag, impact.environment, is_new
        self.users, self.changed = impact.users, impact.changed
        self.unknown = impact.counts[Change.UNKNOWN]
        self.children = impact.children
        self.made, self.made_changed = impact.made, impact.made_changed
        self.counts = [
            Count(color, number, text)
            for change, (color, text) in KINDS.items()
            if (number := impact.counts[change])
        ]
        names = dict.fromkeys(
            answer.variant for answer in sorted({*impact.before, *impact.after}, key=_order)
        )
        variants = [name for name in names if name is not None]
        self.colors = {name: COLORS[index % len(COLORS)] for index, name in enumerate(variants)}
        self.bars = [self._bar("Now", impact.before, impact.users)]
        if is_new or impact.changed:
            self.bars.append(self._bar("After", impact.after, impact.users))
        parts = {part.name: part for bar in self.bars for part in bar.slices}
        self.legend = sorted(parts.values(), key=lambda part: part.color == "ground") if variants else []
        self.examples = [
            Line(
                who_of(context),
                *sides_of(example.before, example.after),
                explain(impact, context) if explain else "",
            )
            for context, example in impact.examples
        ]

    def _bar(self, label: str, answers: Mapping[Answer, float], users: int) -> Bar:
        parts = [
            (_words(answer), self._color(answer), number)
            for answer, number in sorted(_whatever_payload(answers).items(), key=lambda item: _order(item[0]))
        ]
        on = sum(number for answer, number in answers.items() if answer.state is State.ON)
        return Bar(label, answer_slices(parts), round(on), percent_text(on / users * 100))

    def _color(self, answer: Answer) -> str:
        if answer.state is State.ON:
            return self.colors.get(answer.variant or "", "y")
        return "warn" if answer.state is State.UNKNOWN else "ground"


def _order(answer: Answer) -> tuple[int, str]:
    """On first, off last."""
    return [State.ON, State.UNKNOWN, State.OFF].index(answer.state), answer.variant or ""


def _words(answer: Answer) -> str:
    if answer.state is State.ON:
        return f"On · {answer.variant}" if answer.variant else "On"
    return "Off" if answer.state is State.OFF else "Can't tell"


def _whatever_payload(answers: Mapping[Answer, float]) -> dict[Answer, float]:
    found: dict[Answer, float] = defaultdict(float)
    for answer, number in answers.items():
        found[answer._replace(payload=None)] += number
    return found


def sides_of(before: Result, after: Result) -> tuple[Side, Side]:
    """Both sides, with their payloads if these are all that differs."""
    old, new = (_side_of(result) for result in (before, after))
    if old.words != new.words or without_payloads(before.shares) != without_payloads(after.shares):
        return old, new
    payloads = differing_words(before.shares, after.shares)
    shown = [f" · {payload}" if payloads[0] != payloads[1] else "" for payload in payloads]
    return old._replace(words=old.words + shown[0]), new._replace(words=new.words + shown[1])


def _side_of(result: Result) -> Side:
    state, words = _result(without_payloads(result.shares))
    return Side(state, words, result.reason)


def _result(shares: Shares) -> tuple[str, str]:
    [(answer, _), *others] = shares
    if not others:
        return answer.state.value, _words(answer)
    states = {answer.state for answer, _ in shares}
    if State.UNKNOWN in states:
        return "unknown", "Can't tell"
    if states == {State.ON}:
        return "on", "On · random variant"
    return "random", share_of_calls(float(sum(share for answer, share in shares if answer.state is State.ON)))


def who_of(context: Context) -> Who:
    """A user by id, with the other fields behind it."""
    fields = dict(context.given)
    name = next((fields.pop(field) for field in ("userId", "sessionId") if fields.get(field)), "Anonymous")
    shown = [f"{field} {value or '(empty)'}" for field, value in sorted(fields.items())]
    rest = shown[:MAX_FIELDS] + ([f"{len(shown) - MAX_FIELDS} more"] if len(shown) > MAX_FIELDS else [])
    return Who(name, " · ".join(rest))
