"""Presents changes: words and colors, a line for each user whose result changes, and views of impacts and effects."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.functional import cached_property

from flagadmin.core.lists.charts import Slice, answer_slices, choose_variant_color, format_percent
from playground.comparison.compare import Change, Example, Result, describe_difference
from playground.comparison.impact import Impact
from playground.comparison.results import Answer, Shares, drop_payloads
from playground.engine.context import Context
from playground.engine.outcomes import State
from playground.pages.query import CONTEXT
from playground.pages.tables import describe_share
from playground.saved_contexts.effects import SavedChange, SavedEffects
from playground.saved_contexts.expectations import Checked
from projects.models import Project

MAX_FIELDS = 4
"""Context fields shown besides the user's id."""
MAX_SENTENCES = 20
"""Broken expectations shown."""
MAX_BESIDE = 4
"""Changes of saved contexts shown beside a form."""
Explain = Callable[[str, Mapping[str, str]], str]
"""The URL of a page that explains a flag's results for a context; "" if the context does not fit into a URL."""


class Look(NamedTuple):
    """The words and style of a change: classes of a pill, and of a part of a bar."""

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
    """The changes that occur, with their numbers."""
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
    """A context whose result changes. ``link`` explains it; "" if nothing does."""

    who: Who
    before: Side
    after: Side
    link: str


def make_line(example: Example, context: Context, *, explain: Explain | None = None, name: str = "") -> Line:
    """``name`` is the name of a saved context."""
    who = describe_user(context)
    if name:
        who = Who(name, f"{who.name} {who.rest}")
    link = explain(example.flag, context.fields) if explain else ""
    return Line(who, *make_sides(example.before, example.after), link)


def make_sides(before: Result, after: Result) -> tuple[Side, Side]:
    """Both sides, with their payloads if only these differ."""
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
    """A user by id, followed by the other fields."""
    fields = dict(context.fields)
    name = next((fields.pop(field) for field in ("userId", "sessionId") if fields.get(field)), "Anonymous")
    texts = [f"{field} {value or '(empty)'}" for field, value in sorted(fields.items())]
    rest = texts[:MAX_FIELDS] + ([f"{len(texts) - MAX_FIELDS} more"] if len(texts) > MAX_FIELDS else [])
    return Who(name, " · ".join(rest))


# Links ----------------------------------------------------------------------------------------------------------


def make_context_pairs(context: Mapping[str, str]) -> list[tuple[str, str]]:
    """A context as parameters of the playground's pages; empty if they cannot represent it."""
    if any("," in text or not text for text in context.values()):
        return []  # a comma would split the value
    return [(CONTEXT + field, text) for field, text in context.items()]


def explain_in(environments: Iterable[str]) -> Explain:
    """Links to the playground's page of one flag, which shows a context's present result."""
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


class Bar(NamedTuple):
    """The answers that the generated users get in one state."""

    label: str
    slices: Sequence[Slice]
    on: int
    percent: str


class ImpactView:
    """An impact for templates. ``explain`` links examples to their present results."""

    def __init__(self, impact: Impact, *, is_new: bool, explain: Explain | None) -> None:
        self.flag, self.environment, self.is_new = impact.flag, impact.environment, is_new
        who, changes = impact.who, impact.changes
        self.users, self.changed, self.people = who.users, changes.users, who.contexts.people
        self.unknown = changes.counts[Change.UNKNOWN]
        self.children, self.unmeasured = impact.children, impact.unmeasured
        self.made, self.made_changed = len(who.contexts.made), changes.made
        self.counts = count_looks(changes.counts)
        before, after = changes.for_users.before, changes.for_users.after
        on = impact.once_on.for_users.after if impact.once_on else {}
        names = dict.fromkeys(answer.variant for answer in sorted({*before, *after, *on}, key=_make_sort_key))
        variants = [name for name in names if name is not None]
        self.colors = {name: choose_variant_color(index) for index, name in enumerate(variants)}
        self.bars = [self._make_bar("Now", before)]
        if is_new or self.changed:
            self.bars.append(self._make_bar("After", after))
        self.is_off = impact.is_off
        flags, at = who.comparison.after.flags, who.comparison.after.positions.get(impact.flag)
        self.needs = [] if at is None else [parent.name for parent in flags[at].parents]
        self.once_on = self._make_bar("Once on", on) if on else None
        if self.once_on:
            self.bars.append(self.once_on)
        parts = {part.name: part for bar in self.bars for part in bar.slices}
        self.legend = sorted(parts.values(), key=lambda part: part.color == "ground") if variants else []
        self.examples = [make_line(example, context, explain=explain) for context, example in impact.examples]

    def _make_bar(self, label: str, answers: Mapping[Answer, Fraction]) -> Bar:
        parts = [
            (answer_words(answer), self._choose_color(answer), float(number))
            for answer, number in sorted(
                _merge_payloads(answers).items(), key=lambda item: _make_sort_key(item[0])
            )
        ]
        on = float(sum(number for answer, number in answers.items() if answer.state is State.ON))
        return Bar(label, answer_slices(parts), round(on), format_percent(on / self.users * 100))

    def _choose_color(self, answer: Answer) -> str:
        if answer.state is State.ON:
            return self.colors.get(answer.variant or "", "y")
        return "warn" if answer.state is State.UNKNOWN else "ground"


def _make_sort_key(answer: Answer) -> tuple[int, str]:
    """Makes a sort key: on first, off last."""
    return [State.ON, State.UNKNOWN, State.OFF].index(answer.state), answer.variant or ""


def _merge_payloads(answers: Mapping[Answer, Fraction]) -> dict[Answer, Fraction]:
    """The same answers without payloads."""
    counts: dict[Answer, Fraction] = defaultdict(Fraction)
    for answer, number in answers.items():
        counts[answer._replace(payload=None)] += number
    return counts


def trace_url(change: SavedChange) -> str:
    """The trace of the flag's present result."""
    query = {"environment": change.environment, "saved": change.saved.name}
    return f"{reverse('playground-flag', args=[change.flag])}?{urlencode(query)}"


class EffectsView:
    """The effects for the template: ``lines`` are saved contexts by name, with the flag.

    Beside a form they have no links, which would leave the form.
    """

    def __init__(self, effects: SavedEffects, *, beside: bool = False) -> None:
        self.effects = effects
        self.changed = len(effects.who)
        changes = effects.changes[:MAX_BESIDE] if beside else effects.changes
        self.lines = [
            Line(
                Who(change.saved.name, change.flag),
                *make_sides(change.before, change.after),
                "" if beside else trace_url(change),
            )
            for change in changes
        ]
        self.named = len({change.saved.pk for change in changes})

    @property
    def broken(self) -> Sequence[Checked]:
        return self.effects.broken[:MAX_SENTENCES]

    @property
    def more_broken(self) -> int:
        return len(self.effects.broken) - len(self.broken)

    @cached_property
    def refused_by(self) -> Sequence[str]:
        """The names of projects that refuse the change because of broken expectations."""
        if not self.effects.broken:
            return ()
        projects = {check.expectation.enforced_in for check in self.effects.broken}
        refusing = Project.objects.filter(pk__in=projects, refuse_broken_expectations=True)
        return list(refusing.values_list("name", flat=True))

    @property
    def more(self) -> int:
        """The number of changed saved contexts that are not shown."""
        return self.changed - self.named
