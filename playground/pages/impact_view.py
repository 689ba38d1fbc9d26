"""Presents the impact of an edit beside its form: how many users change, how, and the answers before and after."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from flagadmin.core.lists.charts import Slice, answer_slices, choose_variant_color, format_percent
from playground.comparison.compare import Change
from playground.comparison.impact import Impact
from playground.comparison.shares import Answer
from playground.engine.outcomes import State
from playground.pages.lines import Explain, answer_words, count_looks, make_line


class Bar(NamedTuple):
    """The answers that the generated users get in one state."""

    label: str
    slices: Sequence[Slice]
    on: int
    percent: str


class ImpactView:
    """An impact as templates show it. ``explain`` links examples to what they get now."""

    def __init__(self, impact: Impact, *, is_new: bool, explain: Explain | None) -> None:
        self.flag, self.environment, self.is_new = impact.flag, impact.environment, is_new
        who, changes = impact.who, impact.changes
        self.users, self.changed, self.people = who.users, changes.users, who.contexts.people
        self.unknown = changes.counts[Change.UNKNOWN]
        self.children = impact.children
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
    """The same, whatever the payload is."""
    counts: dict[Answer, Fraction] = defaultdict(Fraction)
    for answer, number in answers.items():
        counts[answer._replace(payload=None)] += number
    return counts
