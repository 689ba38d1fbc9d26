"""Says whether the safeguards of plans and flags hold, and turns flags off whose own safeguards are breached.

Whichever server looks first does so, every minute. Safeguards of plans are looked at with their plans.
"""

import logging
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from django.db.models import Q
from django.utils import timezone

from flagadmin.core.audit.record import record
from flagadmin.core.change_options import changing
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import pluralize
from groups.access import Caller
from projects.flags.environments.actions import disable_flag
from projects.models import FlagEnvironment
from projects.projects.queries import needs_request
from releases.attempts import SOON, Attempts, claim_due, wait_briefly_for_locks
from releases.gate_refusal import make_skip_event
from releases.models import ReleasePlan, Safeguard
from releases.plans.queries import FlagPath, get_flag_path
from releases.plans.steps import LOOK_EVERY
from releases.requests.approvals import lock_project
from releases.safeguards.numbers import (
    PERCENTILES,
    WITHOUT,
    Number,
    PrometheusError,
    Series,
    Trusted,
    ask_prometheus,
    compute_number,
    read_series,
)
from releases.safeguards.queries import get_safeguard_path
from releases.safeguards.rules import TIME_RANGES, TOTALS, narrow_to_environment

log = logging.getLogger("flagadmin.releases")

SILENCE = timedelta(minutes=20)
"""Time without a report after which there is no data."""
BY_SAFEGUARD = Caller.system("Safeguard")
"""Acts on behalf of the permitted user who set the safeguard."""


class State(StrEnum):
    HOLDS = "holds"
    BREACHED = "breached"
    NO_DATA = "no data"
    TOO_EARLY = "too early"


class Verdict(NamedTuple):
    """``sentence`` is for people. ``value`` was compared with the threshold."""

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
    """Judges many plans at one moment. Reads each metric and query once."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self._series: dict[tuple[str, datetime, Trusted, bool], list[Series]] = {}
        self._answers: dict[str, float | str | None] = {}

    def judge(self, plan: ReleasePlan) -> list[Verdict]:
        since = plan.numbers_from or self.now
        place = get_flag_path(plan)
        return [self._judge(safeguard, place, since) for safeguard in plan.safeguards.all()]

    def judge_of_flag(self, safeguard: Safeguard) -> Verdict:
        """Judges a flag's own safeguard."""
        place = get_safeguard_path(safeguard)
        return self._judge(safeguard, place, safeguard.numbers_from or self.now)

    def _judge(self, safeguard: Safeguard, place: FlagPath, since: datetime) -> Verdict:
        if safeguard.source == Safeguard.Source.ALERT:
            return _judge_alert(safeguard)
        if safeguard.source == Safeguard.Source.EXTERNAL:
            return self._judge_query(safeguard)
        begin = max(since, self.now - TIME_RANGES[safeguard.time_range])
        number = self._read(safeguard, place, begin)
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

    def _read(self, safeguard: Safeguard, place: FlagPath, begin: datetime) -> Number:
        flag, trusted = place.feature, Trusted(safeguard.frontend, place.project)
        labels = narrow_to_environment(safeguard.labels, place.environment)
        with_buckets = safeguard.aggregation in PERCENTILES
        begin = round_up(begin)
        key = safeguard.metric, begin, trusted, with_buckets
        if key not in self._series:
            self._series[key] = read_series(
                safeguard.metric, begin, self.now, trusted, with_buckets=with_buckets
            )
        series, seconds = self._series[key], max(1.0, (self.now - begin).total_seconds())
        if not safeguard.compares:
            return compute_number(series, safeguard.aggregation, labels, seconds)
        labeled = [each for each in series if flag in each.labels]
        having = [each for each in labeled if each.labels[flag] != WITHOUT]
        lacking = [each for each in labeled if each.labels[flag] == WITHOUT]
        numbers = [compute_number(part, safeguard.aggregation, labels, seconds) for part in (having, lacking)]
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
    """Rounds up to a full minute: the previous one may contain earlier reports."""
    minute = moment.replace(second=0, microsecond=0)
    return minute if minute == moment else minute + timedelta(minutes=1)


def subtract(having: Number, lacking: Number) -> Number:
    """The difference between the numbers with and without the flag. None unless both are reported."""
    if having.value is None or lacking.value is None or not having.latest or not lacking.latest:
        return Number(None, max(filter(None, (having.latest, lacking.latest)), default=None))
    return Number(having.value - lacking.value, min(having.latest, lacking.latest))


def is_too_early(safeguard: Safeguard, begin: datetime, now: datetime) -> bool:
    """Whether it is too early: a total with a lower limit is known only after its full time."""
    is_low = safeguard.operator == "<" and safeguard.aggregation in TOTALS
    return is_low and now - begin < TIME_RANGES[safeguard.time_range]


def compare(safeguard: Safeguard, value: float) -> Verdict:
    limit, is_upper = safeguard.threshold, safeguard.operator == ">"
    is_breached = value > limit if is_upper else value < limit
    if safeguard.compares:
        sentence = f"{safeguard}: {value:+.4g} than without the flag, limit {limit:+g}."
    else:
        side = "above" if is_breached == is_upper else "below"
        sentence = f"{safeguard} {side} {limit:g}: {value:.4g} now."
    return Verdict(safeguard, State.BREACHED if is_breached else State.HOLDS, sentence, value)


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
    """The breached safeguard with the strongest action: turning off, then stepping back."""
    order = [Safeguard.Action.TURN_OFF, Safeguard.Action.STEP_BACK, Safeguard.Action.PAUSE]
    breached = [verdict for verdict in verdicts if verdict.state == State.BREACHED]
    return min(
        breached, key=lambda verdict: order.index(Safeguard.Action(verdict.safeguard.action)), default=None
    )


def look_at_flags() -> None:
    """Checks the due safeguards of flags."""
    for keys in claim_due("releases_safeguard", LOOK_EVERY):
        _look_at(keys)


def _look_at(keys: Sequence[str]) -> None:
    now = timezone.now()
    safeguards = list(Safeguard.objects.filter(pk__in=keys).select_related("flag").order_by("pk"))
    places = find_places_on(safeguards)
    judge, attempts = Judge(now), Attempts()
    for safeguard in safeguards:
        is_on = (safeguard.flag_id, safeguard.environment_id) in places
        if is_on == (safeguard.numbers_from is None):
            Safeguard.objects.filter(pk=safeguard.pk).update(numbers_from=now if is_on else None)
        elif is_on and (verdict := judge.judge_of_flag(safeguard)).state == State.BREACHED:
            act, note = partial(turn_off, safeguard, verdict), partial(_note_failure, safeguard)
            attempts.attempt(safeguard.pk, get_safeguard_path(safeguard).project, act, note)
    Safeguard.objects.filter(pk__in=attempts.left).update(look_at=now + SOON)


def find_places_on(safeguards: Collection[Safeguard]) -> set[tuple[int | None, str | None]]:
    """The places, among those of active flags and environments, in which the flag is on."""
    of_any = Q(flag__in={safeguard.flag_id for safeguard in safeguards}, flag__archived_at=None)
    return set(FlagEnvironment.objects.filter(of_any, enabled=True).values_list("flag_id", "environment_id"))


def turn_off(seen: Safeguard, verdict: Verdict) -> None:
    """Turns the flag off, unless the safeguard was removed or the flag is off. Raises the errors of turning it off."""
    flag_path = get_safeguard_path(seen)
    approved_in = flag_path.project, flag_path.environment
    with changing(comment=verdict.sentence, approved_in=approved_in):
        _turn_off(seen, flag_path)


@transactional
def _turn_off(seen: Safeguard, flag_path: FlagPath) -> None:
    wait_briefly_for_locks()
    lock_project(flag_path.project)
    rows = Safeguard.objects.filter(pk=seen.pk, numbers_from=seen.numbers_from)
    if rows.update(numbers_from=None):
        disable_flag(*flag_path, caller=BY_SAFEGUARD)
        if not seen.approved and needs_request(flag_path.project, [flag_path.environment]):
            skipped = make_skip_event(flag_path.project, flag_path.environment, flag_path.feature)
            record(skipped, actor=BY_SAFEGUARD)


def _note_failure(safeguard: Safeguard, reason: str) -> None:
    log.warning("Safeguard %s could not turn its flag off: %s", safeguard.pk, reason)
