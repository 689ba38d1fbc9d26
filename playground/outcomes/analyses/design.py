"""What an analysis asks: of which time, per which unit, and which columns of the table measure what came of it.

Which side of a flag each row of a table was on, and the shares that were set for such a row.

Shares are those of an evaluation in which each bucket is drawn anew: what the strategies and variants that were valid
at the row's time would give users with the same fields.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise, product
from math import prod
from operator import sub
from typing import Any, Self, get_args

from flagadmin.core.errors import Problem, check_problems, choices
from flagadmin.core.http.responses import iso
from playground.comparison.results import ONE, ZERO, Answer, Picks, Shares
from playground.comparison.table import Mask
from playground.engine.flags import CompiledFlag
from playground.engine.outcomes import State
from playground.engine.snapshot import Snapshot
from playground.engine.strategies import Rollout
from playground.engine.variants import CompiledVariants
from playground.outcomes import experiment
from playground.outcomes.experiment import BEFORE, Measure, Method
from playground.outcomes.experiment.design import Kind
from playground.outcomes.history import FlagHistory
from playground.outcomes.partial import PartialResults, RowTable

KINDS: tuple[Kind, ...] = get_args(Kind)
METHODS: tuple[Method, ...] = get_args(Method)
KEEP, LEAVE_OUT = "keep", "leave out"
MAX_MEASURES, MAX_SEGMENTS = 5, 3
MAX_PERIOD = timedelta(days=400)
MAX_COLUMN_LENGTH = 200  # characters
OFF, ON = "off", "on"
"""Sides of a flag without variants. With variants, their names stand in for ``on``."""
PER = "/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """From ``since`` until before ``until``. ``unit`` "": the field by which the flag divided its users; ``control``
    "": off, or else a variant. ``covariate``: a column, or BEFORE. Other names are those of ``experiment.Design``.
    """

    since: datetime
    until: datetime
    measures: Sequence[Measure]
    unit: str = ""
    control: str = ""
    covariate: str = ""
    exposure: str = ""
    segments: Sequence[str] = ()
    crossovers: str = KEEP
    method: str = METHODS[0]

    def check(self, now: datetime) -> None:
        """Raises ValidationError."""
        check_problems(self._find_problems(now))

    def _find_problems(self, now: datetime) -> Iterator[Problem]:
        if self.since >= self.until:
            yield Problem("to", f"must be after {iso(self.since)}")
        elif self.until - self.since > MAX_PERIOD:
            yield Problem("from", f"must be at most {MAX_PERIOD.days} days before {iso(self.until)}")
        if self.since > now:
            yield Problem("from", "must not be in the future")
        if not 1 <= len(self.measures) <= MAX_MEASURES:
            yield Problem(
                "mean", f"must name 1 to {MAX_MEASURES} measures together with proportion and ratio"
            )
        if len(self.segments) > MAX_SEGMENTS:
            yield Problem("segment", f"must name at most {MAX_SEGMENTS} columns")
        names = [measure.name for measure in self.measures]
        if len(set(names)) < len(names):
            yield Problem("mean", "must name each column once, also with proportion and ratio")
        for measure in self.measures:
            if not measure.column or measure.denominator == "":
                yield Problem(
                    measure.kind, f'must name columns, such as revenue/visits, not "{measure.name[:100]}"'
                )
        if any(len(name) > MAX_COLUMN_LENGTH for name in (*names, *self.columns)):
            yield Problem("mean", f"must have at most {MAX_COLUMN_LENGTH} characters")

    @property
    def columns(self) -> list[str]:
        """All columns that are read, but for the unit's and those of the context."""
        measured = [column for each in self.measures for column in (each.column, each.denominator)]
        covariate = "" if self.covariate == BEFORE else self.covariate
        return list(dict.fromkeys(filter(None, (*measured, covariate, self.exposure, *self.segments))))

    def check_columns(self, columns: Collection[str]) -> None:
        """Raises ValidationError naming those that the table lacks."""
        check_problems(
            Problem("file", f"has no column {name}. It has {choices(columns)}")
            for name in self.columns
            if name not in columns
        )

    def make_experiment(
        self, phases: Sequence[experiment.Phase], control: str, interacting: Sequence[str]
    ) -> experiment.Design:
        return experiment.Design(
            measures=[replace(each, covariate=self.covariate or None) for each in self.measures],
            phases=phases,
            control=control,
            start=self.since,
            end=self.until,
            method="fixed" if self.method == "fixed" else "sequential",
            exposure=self.exposure or None,
            crossovers="leave out" if self.crossovers == LEAVE_OUT else "keep",
            segments=self.segments,
            interacting=interacting,
        )

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        times = {"since": self.since.isoformat(), "until": self.until.isoformat()}
        return asdict(self) | times

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        times = {end: datetime.fromisoformat(stored[end]) for end in ("since", "until")}
        return cls(**{**stored, **times, "measures": [Measure(**each) for each in stored["measures"]]})

    def make_document(self) -> dict[str, Any]:
        """As the API shows it."""
        return {
            "from": iso(self.since),
            "to": iso(self.until),
            "unit": self.unit or None,
            "measures": [{"kind": each.kind, "name": each.name} for each in self.measures],
            "control": self.control or None,
            "covariate": self.covariate or None,
            "exposure": self.exposure or None,
            "segments": list(self.segments),
            "crossovers": self.crossovers,
            "method": self.method,
        }


def read_measures(texts: Mapping[str, Iterable[str]]) -> list[Measure]:
    """Measures by their kind; a ratio is written ``revenue/visits``, or ``revenue`` for the mean of a row."""
    return [
        read_measure(kind, text.strip()) for kind in KINDS for text in texts.get(kind, ()) if text.strip()
    ]


def read_measure(kind: Kind, text: str) -> Measure:
    column, slash, per = (
        part.strip() for part in (text.rpartition(PER) if kind == "ratio" else ("", "", text))
    )
    return Measure(f"{column}{PER}{per}", kind, column, per) if slash else Measure(per, kind, per)


Stratum = tuple[tuple[str, Fraction], ...]
"""The share that was set for each side."""
NEVER: Stratum = ((OFF, ONE),)
Drawn = tuple[int, bytes]
"""What a bucket is computed from: a column and a group id."""
MAX_COMBINATIONS = 256
"""Of ranges of buckets. With more, rollouts count as independent."""


class SetShares(PartialResults):
    """The shares of answers as they were set, not what the rows' own identifiers gave.

    ``buckets``: that of all rollouts which share one, as strategies of a flag do. Without them, each rollout is
    independent of the others.
    """

    def __init__(
        self, snapshot: Snapshot, table: RowTable, name: str, buckets: Mapping[Drawn, int] | None = None
    ) -> None:
        super().__init__(snapshot, table, name)
        self._buckets = buckets

    def _find_inside(self, rollout: Rollout) -> Iterator[tuple[Mask, Fraction]]:
        if self._buckets is None:
            if rollout.threshold > 0:
                yield self.table.everyone, Fraction(min(rollout.threshold, 100), 100)
        elif self._buckets[_find_drawn(rollout)] <= rollout.threshold:
            yield self.table.everyone, ONE

    def _split_by_weight(self, variants: CompiledVariants) -> Iterator[tuple[Mask, Shares]]:
        weights = enumerate(map(sub, variants.limits, (0, *variants.limits)))
        shares = ((index, Fraction(weight, variants.total)) for index, weight in weights if weight)
        answers = ((Answer(State.ON, variants.names[index]), share) for index, share in shares)
        yield self.table.everyone, tuple(answers)

    def _pick_variants(self, variants: CompiledVariants | None) -> Picks:
        return [
            (mask, tuple((answer._replace(payload=None), share) for answer, share in shares))
            for mask, shares in super()._pick_variants(variants)
        ]


def _find_drawn(rollout: Rollout) -> Drawn:
    return rollout.column, rollout.key


def find_set_shares(snapshot: Snapshot, table: RowTable, name: str) -> dict[Stratum, Mask]:
    """The rows by the shares that were set for them.

    Two strategies of 10 % and 50 % with one group id are 50 % together. So the flag is evaluated for each range of
    buckets that no rollout divides, and the results are added with the sizes of their ranges.
    """
    limits: dict[Drawn, set[int]] = defaultdict(lambda: {100})
    for flag in snapshot.flags:
        for rollout in (strategy.rollout for strategy in flag.strategies):
            if rollout is not None:
                limits[_find_drawn(rollout)].add(min(max(rollout.threshold, 0), 100))
    if prod(map(len, limits.values())) > MAX_COMBINATIONS:
        draws: Iterable[tuple[Mapping[Drawn, int] | None, Fraction]] = [(None, ONE)]
    else:
        draws = map(_join_ranges, product(*(_list_ranges(drawn, ends) for drawn, ends in limits.items())))
    parts: dict[Stratum, Mask] = {(): table.everyone}
    is_first = True
    for buckets, weight in draws:
        joined: dict[Stratum, Mask] = defaultdict(int)
        for shares, where in SetShares(snapshot, table, name, buckets).results(name).items():
            for stratum, mask in parts.items():
                if part := mask & where:
                    known = is_first or bool(stratum)
                    joined[_add(stratum, make_stratum(shares), weight) if known else ()] |= part
        parts, is_first = joined, False
    return parts


def _list_ranges(drawn: Drawn, ends: set[int]) -> list[tuple[Drawn, int, int]]:
    """The last bucket and the size of each range."""
    last = sorted(ends - {0})
    return [(drawn, end, end - begin) for begin, end in pairwise([0, *last])]


def _join_ranges(ranges: Sequence[tuple[Drawn, int, int]]) -> tuple[dict[Drawn, int], Fraction]:
    return {drawn: end for drawn, end, _ in ranges}, Fraction(
        prod(size for *_, size in ranges), 100 ** len(ranges)
    )


def _add(stratum: Stratum, more: Stratum, weight: Fraction) -> Stratum:
    """Empty if the shares of ``more`` are not known."""
    if not more:
        return ()
    sides = dict(stratum)
    for side, share in more:
        sides[side] = sides.get(side, ZERO) + share * weight
    return tuple(sorted(sides.items()))


class Sides:
    """The sides of a flag. ``strata`` are the shares that were set, numbered as they are found."""

    def __init__(self, history: FlagHistory) -> None:
        self._history = history
        self.strata: dict[Stratum, int] = {NEVER: 0}
        self.left_out: Counter[str] = Counter()
        """Rows whose side is not known: ``unknown`` (a field is missing) or ``random``."""
        self.lacking: Counter[str] = Counter()

    def assign(
        self, fields: Sequence[str], cells: Sequence[Sequence[str]], times: Sequence[datetime]
    ) -> tuple[list[str], list[int]]:
        """For each row the name of its side, "" if that is not known, and the number of its stratum."""
        rows_by_state: dict[int, list[int]] = defaultdict(list)
        for row, time in enumerate(times):
            rows_by_state[self._history.count_states_at(time)].append(row)
        sides, strata = [""] * len(cells), [0] * len(cells)
        for state, rows in rows_by_state.items():
            table = RowTable(fields, [cells[row] for row in rows], [times[row] for row in rows])
            known, found = self._assign_in_state(state, table)
            for place, row in enumerate(rows):
                sides[row], strata[row] = known[place], found[place]
        return sides, strata

    def _assign_in_state(self, state: int, table: RowTable) -> tuple[list[str], list[int]]:
        snapshot = self._history.snapshots[state - 1] if state else None
        if snapshot is None:
            if state:
                self.left_out["unknown"] += len(table)
            return [OFF if state == 0 else ""] * len(table), [0] * len(table)
        name = self._history.name
        results = PartialResults(snapshot, table, name)
        sides, strata = [""] * len(table), [0] * len(table)
        for shares, mask in results.results(name).items():
            side = self._find_side(shares, mask.bit_count(), results.lacking)
            for row in table.positions(mask):
                sides[row] = side
        for shares_set, mask in find_set_shares(snapshot, table, name).items():
            stratum = self.strata.setdefault(shares_set, len(self.strata))
            for row in table.positions(mask):
                strata[row] = stratum
        return sides, strata

    def _find_side(self, shares: Shares, rows: int, lacking: Sequence[str]) -> str:
        names = {name_side(answer) for answer, _ in shares}
        if len(names) == 1 and None not in names:
            return str(names.pop())
        if None in names:
            self.lacking.update(dict.fromkeys(lacking, rows))
        self.left_out["unknown" if None in names else "random"] += rows
        return ""


def name_side(answer: Answer) -> str | None:
    """None if it is not known."""
    if answer.state is State.UNKNOWN:
        return None
    return (answer.variant or ON) if answer.state is State.ON else OFF


def make_stratum(shares: Shares) -> Stratum:
    """Sorted by side. Empty if some answer is not known."""
    stratum: dict[str, Fraction] = defaultdict(Fraction)
    for answer, share in shares:
        side = name_side(answer)
        if side is None:
            return ()
        stratum[side] += share
    return tuple(sorted(stratum.items()))


def list_dividing_fields(history: FlagHistory, since: datetime, until: datetime) -> list[str]:
    """The stickiness fields by which the flag, or a parent of it, divided its users in a period; sorted."""
    first, last = history.count_states_at(since), history.count_states_at(until)
    states = history.snapshots[max(first - 1, 0) : last]
    return sorted({name for state in states if state for flag in state.flags for name in divides_by(flag)})


def divides_by(flag: CompiledFlag) -> set[str]:
    """The stickiness fields by which a flag divides its users."""
    if not flag.enabled or flag.fault is not None:
        return set()
    strategies = [strategy for strategy in flag.strategies if strategy.counts]
    rollouts = (strategy.rollout for strategy in strategies)
    lists = (flag.variants, *(strategy.variants for strategy in strategies))
    fields = {rollout.stickiness for rollout in rollouts if rollout and 0 < rollout.threshold < 100}
    return (fields | {each.stickiness for each in lists if each and each.divides}) - {"random"}
