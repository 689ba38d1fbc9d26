"""Says whether the safeguards of plans hold."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from flagadmin.core.wording import pluralize
from releases.models import ReleasePlan, Safeguard
from releases.safeguards.numbers import (
    PERCENTILES,
    WITHOUT,
    Number,
    Series,
    compute_number,
    read_series,
)
from releases.safeguards.prometheus import PrometheusError, ask_prometheus
from releases.safeguards.queries import get_safeguard_path
from releases.safeguards.rules import TIME_RANGES, TOTALS

SILENCE = timedelta(minutes=20)
"""Time without a report after which there is no data."""


class State(StrEnum):
    HOLDS = "holds"
    BREACHED = "breached"
    NO_DATA = "no data"
    TOO_EARLY = "too early"


class Verdict(NamedTuple):
    """``sentence`` is for people. ``value`` is what was compared with the threshold."""

    safeguard: Safeguard
    state: State
    sentence: str
    value: float | None = None

    @property
    def holds(self) -> bool:
        return self.state == State.HOLDS

    @property
    def css(self) -> str:
        return {State.HOLDS: "holds", State.BREACHED: "fails"}.get(self.state, "open")


class Judge:
    """Judges many plans at one moment, and reads each metric and asks each query once."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self._series: dict[tuple[str, datetime, bool], list[Series]] = {}
        self._answers: dict[str, float | str | None] = {}

    def judge(self, plan: ReleasePlan) -> list[Verdict]:
        since = plan.numbers_from or self.now
        return [self._judge(safeguard, plan.flag.name, since) for safeguard in plan.safeguards.all()]

    def judge_of_flag(self, safeguard: Safeguard) -> Verdict:
        """One that is of a flag, and not of its plan."""
        return self._judge(
            safeguard, get_safeguard_path(safeguard).feature, safeguard.numbers_from or self.now
        )

    def _judge(self, safeguard: Safeguard, flag: str, since: datetime) -> Verdict:
        if safeguard.source == Safeguard.Source.ALERT:
            return _judge_alert(safeguard)
        if safeguard.source == Safeguard.Source.EXTERNAL:
            return self._judge_query(safeguard)
        begin = max(since, self.now - TIME_RANGES[safeguard.time_range])
        number = self._read(safeguard, flag, begin)
        if number.value is None or number.latest is None or self.now - number.latest > SILENCE:
            return _say_silence(safeguard, number, begin, self.now)
        verdict = compare(safeguard, number.value)
        if verdict.holds and is_too_early(safeguard, begin, self.now):
            return Verdict(
                safeguard,
                State.TOO_EARLY,
                f"{safeguard}: needs {_words_of(safeguard.time_range)} of numbers.",
            )
        return verdict

    def _read(self, safeguard: Safeguard, flag: str, begin: datetime) -> Number:
        with_buckets = safeguard.aggregation in PERCENTILES
        begin = round_up(begin)
        key = safeguard.metric, begin, with_buckets
        if key not in self._series:
            self._series[key] = read_series(safeguard.metric, begin, self.now, with_buckets=with_buckets)
        series, seconds = self._series[key], max(1.0, (self.now - begin).total_seconds())
        if not safeguard.compares:
            return compute_number(series, safeguard.aggregation, safeguard.labels, seconds)
        labeled = [each for each in series if flag in each.labels]
        having = [each for each in labeled if each.labels[flag] != WITHOUT]
        lacking = [each for each in labeled if each.labels[flag] == WITHOUT]
        numbers = [
            compute_number(part, safeguard.aggregation, safeguard.labels, seconds)
            for part in (having, lacking)
        ]
        return subtract(*numbers)

    def _judge_query(self, safeguard: Safeguard) -> Verdict:
        if safeguard.metric not in self._answers:
            try:
                self._answers[safeguard.metric] = ask_prometheus(safeguard.metric, self.now)
            except PrometheusError as error:
                self._answers[safeguard.metric] = str(error)
        answer = self._answers[safeguard.metric]
        if isinstance(answer, float):
            return compare(safeguard, answer)
        reason = answer if isinstance(answer, str) else "Prometheus has no data."
        return Verdict(safeguard, State.NO_DATA, f"{safeguard}: {reason}")


def round_up(moment: datetime) -> datetime:
    """Rounds up to a full minute: in the one before, something earlier may have been reported."""
    minute = moment.replace(second=0, microsecond=0)
    return minute if minute == moment else minute + timedelta(minutes=1)


def subtract(having: Number, lacking: Number) -> Number:
    """Subtracts the number of those without the flag from that of those who have it. None unless both are reported."""
    if having.value is None or lacking.value is None or not having.latest or not lacking.latest:
        return Number(None, max(filter(None, (having.latest, lacking.latest)), default=None))
    return Number(having.value - lacking.value, min(having.latest, lacking.latest))


def is_too_early(safeguard: Safeguard, begin: datetime, now: datetime) -> bool:
    """A total that must not be too low is known only once all of its time has been counted."""
    is_low = safeguard.operator == "<" and safeguard.aggregation in TOTALS
    return is_low and now - begin < TIME_RANGES[safeguard.time_range]


def compare(safeguard: Safeguard, value: float) -> Verdict:
    is_breached = value > safeguard.threshold if safeguard.operator == ">" else value < safeguard.threshold
    side = (
        ("above" if is_breached else "below")
        if safeguard.operator == ">"
        else ("below" if is_breached else "above")
    )
    more = " than without the flag" if safeguard.compares else ""
    compared = f"{value:+.4g}{more}, limit {safeguard.threshold:+g}" if more else f"{value:.4g}"
    sentence = (
        f"{safeguard}: {compared}."
        if more
        else f"{safeguard} {side} {safeguard.threshold:g}: {compared} now."
    )
    state = State.BREACHED if is_breached else State.HOLDS
    return Verdict(safeguard, state, sentence, value)


def _judge_alert(safeguard: Safeguard) -> Verdict:
    if safeguard.firing_since is not None:
        return Verdict(safeguard, State.BREACHED, f"Alert {safeguard.metric} fires.")
    return Verdict(safeguard, State.HOLDS, f"Alert {safeguard.metric} does not fire.")


def _say_silence(safeguard: Safeguard, number: Number, begin: datetime, now: datetime) -> Verdict:
    if number.latest is not None and number.value is None:
        why = (
            "users with the flag and without are not both reported"
            if safeguard.compares
            else "needs a histogram"
        )
        return Verdict(safeguard, State.NO_DATA, f"{safeguard}: {why}.")
    minutes = int((now - (number.latest or begin)).total_seconds() // 60)
    silence = f"no numbers for {pluralize(minutes, 'minute')}" if minutes else "waits for numbers"
    return Verdict(safeguard, State.NO_DATA, f"{safeguard}: {silence}.")


def _words_of(time_range: str) -> str:
    return {"hour": "an hour"}.get(time_range, f"a {time_range}")


def find_breach(verdicts: Iterable[Verdict]) -> Verdict | None:
    """The breached safeguard that does most: turning off, then stepping back."""
    order = [Safeguard.Action.TURN_OFF, Safeguard.Action.STEP_BACK, Safeguard.Action.PAUSE]
    breached = [verdict for verdict in verdicts if verdict.state == State.BREACHED]
    return min(
        breached, key=lambda verdict: order.index(Safeguard.Action(verdict.safeguard.action)), default=None
    )
