"""Rows in compact arrays, and from them the values of each unit, without an object for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from math import inf, nan

import numpy as np
from numpy.typing import NDArray

from playground.outcomes.experiment.design import BEFORE, MAX_SIDES, Design, Measure
from playground.outcomes.experiment.problems import BadCell

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

MAX_VALUES = 10
"""Of a segment; all others are OTHERS."""
OTHERS = "(others)"
MAX_CODES = 1_000
_WORDS = {"": nan, "true": 1.0, "false": 0.0}
NUMERATOR, DENOMINATOR, COVARIATE, COVARIATE_DENOMINATOR = (
    "numerator",
    "denominator",
    "covariate",
    "covariate denominator",
)


class Collector:
    """See ``collect``. Each unit is kept as 64 bits of a hash."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.numbers = [column for column in design.columns if column not in design.segments]
        self.sides: dict[str, int] = {design.control: 0}
        self._codes: dict[str, dict[str, int]] = {column: {} for column in design.segments}
        self._parts: dict[str, list[NDArray]] = defaultdict(list)
        self.rows = self.rows_before = self.rows_left_out = self.rows_outside = 0

    def add(
        self,
        units: Sequence[str],
        sides: Sequence[str | None],
        times: Sequence[datetime],
        cells: Mapping[str, Sequence[str]],
    ) -> None:
        """Raises BadCell, and ValueError for too many sides."""
        when = np.array([time.timestamp() for time in times])
        design = self.design
        is_before = when < design.start.timestamp()
        earliest = -inf if design.before is None else design.before.timestamp()
        is_inside = ~is_before & (when < design.end.timestamp())
        has_unit = np.array([bool(unit) for unit in units], bool)
        side = np.array([-1 if side is None else self._number_side(side) for side in sides], np.int8)
        counts = has_unit & (is_inside | (is_before & (when >= earliest)))
        self.rows += int(is_inside.sum())
        self.rows_before += int((is_before & (when >= earliest)).sum())
        self.rows_left_out += int((is_inside & (~has_unit | (side < 0))).sum())
        self.rows_outside += int((~is_inside & ~(is_before & (when >= earliest))).sum())
        hashed = b"".join(blake2b(unit.encode(), digest_size=8).digest() for unit in units)
        self._keep("unit", np.frombuffer(hashed, np.uint64)[counts])
        self._keep("time", when[counts])
        self._keep("side", side[counts])
        for column in self.numbers:
            self._keep(column, _read_numbers(column, cells[column])[counts])
        for column, codes in self._codes.items():
            read = np.array([_find_code(codes, text) for text in cells[column]], np.int32)
            self._keep(f"segment {column}", read[counts])

    def _keep(self, name: str, values: NDArray) -> None:
        self._parts[name].append(values)

    def _number_side(self, side: str) -> int:
        if side not in self.sides and len(self.sides) >= MAX_SIDES:
            raise ValueError(f"sides: must be at most {MAX_SIDES}")
        return self.sides.setdefault(side, len(self.sides))

    def take(self, name: str) -> NDArray:
        """A column of all rows, which is given away."""
        parts = self._parts.pop(name, [])
        return np.concatenate(parts) if parts else np.empty(0)

    def names_of(self, segment: str) -> list[str]:
        return list(self._codes[segment])


def _find_code(codes: dict[str, int], text: str) -> int:
    if text not in codes and len(codes) >= MAX_CODES:
        return MAX_CODES
    return codes.setdefault(text, len(codes))


def _read_numbers(column: str, texts: Sequence[str]) -> Floats:
    """NaN where a cell is empty."""
    try:
        read = np.array([float(text) if text else nan for text in texts], float)
    except ValueError:
        read = np.array([_read_number(row, column, text) for row, text in enumerate(texts)], float)
    if not np.isfinite(read).all():
        for row in np.flatnonzero(~np.isfinite(read)).tolist():
            if texts[row].strip():
                raise BadCell(row, column, texts[row])
    return read


def _read_number(row: int, column: str, text: str) -> float:
    if (word := _WORDS.get(text.strip().lower())) is not None:
        return word
    try:
        return float(text)
    except ValueError:
        raise BadCell(row, column, text) from None


@dataclass
class Segment:
    """``codes``: for each unit, the place of its value in ``values``."""

    name: str
    values: list[str]
    codes: Ints


class Units:
    """All units that count, by number, with their rows in the order of time. ``phase``, ``side`` are by unit."""

    def __init__(self, collector: Collector) -> None:
        self.design = design = collector.design
        unit, time, side = collector.take("unit"), collector.take("time"), collector.take("side")
        # Exposed ones begin a unit; others follow.
        columns = {column: collector.take(column) for column in collector.numbers}
        segments = {column: collector.take(f"segment {column}") for column in design.segments}
        start = design.start.timestamp()
        begins = (time >= start) & (side >= 0)
        if design.exposure is not None:
            begins &= np.nan_to_num(columns[design.exposure]) != 0
        candidates = np.flatnonzero(begins)
        ordered = candidates[np.lexsort((time[candidates], unit[candidates]))]
        ids, places = np.unique(unit[ordered], return_index=True)
        first = ordered[places]
        self.first, self.side = time[first], side[first].astype(np.int64)
        starts = np.array([phase.start.timestamp() for phase in design.phases])
        self.phase: Ints = np.searchsorted(starts, self.first, side="right") - 1
        if not len(ids):
            unit, time, side = unit[:0], time[:0], side[:0]
        number: Ints = np.searchsorted(ids, unit)
        number[number == len(ids)] = 0
        known = ids[number] == unit
        is_before = known & (time < start)
        follows = known & ~is_before & (time >= self.first[number])
        crossed = np.zeros(len(ids), bool)
        crossed[number[follows & (side >= 0) & (side != self.side[number])]] = True
        self.crossovers, self.had_side = int(crossed.sum()), len(ids)
        if design.crossovers == "leave out":
            stays = ~crossed
            self.first, self.side, self.phase = self.first[stays], self.side[stays], self.phase[stays]
            follows &= stays[number]
            is_before &= stays[number]
            first, number = first[stays], (np.cumsum(stays) - 1)[number]
        self.segments = [
            _make_segment(name, codes[first], collector.names_of(name)) for name, codes in segments.items()
        ]
        inside, before = np.flatnonzero(follows), np.flatnonzero(is_before)
        inside = inside[np.argsort(time[inside], kind="stable")]
        self._inside = Rows(number[inside], time[inside], {})
        self._before = Rows(number[before], time[before], {})
        del unit, time, side, number, known, follows, is_before
        while columns:  # One at a time, so that not all are there twice.
            name, values = columns.popitem()
            self._inside.columns[name], self._before.columns[name] = values[inside], values[before]

    def __len__(self) -> int:
        return len(self.first)

    @property
    def has_before(self) -> bool:
        return len(self._before.number) > 0

    def values_over_time(self, measure: Measure, ends: Sequence[float]) -> Iterator[dict[str, Floats]]:
        """The values of all units with what happened until each of ``ends``, which increase. Arrays are used again."""
        covariates = self._covariates(measure)
        values = {name: np.zeros(len(self)) for name in _columns_of(measure)}
        done = 0
        for end in ends:
            until = int(np.searchsorted(self._inside.time, end))
            _accumulate(values, measure, self._inside, slice(done, until))
            done = until
            yield {**values, **covariates}

    def values_before(self, measure: Measure) -> dict[str, Floats]:
        """The values of all units from the period before; 0 for those without a row in it."""
        values = {name: np.zeros(len(self)) for name in _columns_of(measure)}
        _accumulate(values, measure, self._before, slice(None))
        return values

    def covariate(self, column: str) -> Floats:
        """The first number of each unit in the period; the mean of all for those without one."""
        values = self._inside.columns[column]
        with_number = np.flatnonzero(~np.isnan(values))
        found = np.full(len(self), nan)
        units, places = np.unique(self._inside.number[with_number], return_index=True)
        found[units] = values[with_number[places]]
        return np.where(np.isnan(found), np.nanmean(found) if len(units) else 0.0, found)

    def _covariates(self, measure: Measure) -> dict[str, Floats]:
        if measure.covariate is None:
            return {}
        if measure.covariate != BEFORE:
            return {COVARIATE: self.covariate(measure.covariate)}
        before = self.values_before(measure)
        names = {NUMERATOR: COVARIATE, DENOMINATOR: COVARIATE_DENOMINATOR}
        return {names[name]: values for name, values in before.items()}


@dataclass
class Rows:
    number: Ints
    time: Floats
    columns: dict[str, Floats]


def _columns_of(measure: Measure) -> tuple[str, ...]:
    return (NUMERATOR, DENOMINATOR) if measure.kind == "ratio" else (NUMERATOR,)


def _accumulate(values: dict[str, Floats], measure: Measure, rows: Rows, some: slice) -> None:
    number, found = rows.number[some], rows.columns[measure.column][some]
    if measure.kind == "proportion":
        values[NUMERATOR][number[np.nan_to_num(found) != 0]] = 1
        return
    count = len(values[NUMERATOR])
    values[NUMERATOR] += np.bincount(number, np.nan_to_num(found), count)
    if measure.kind == "ratio":
        other = (
            ~np.isnan(found)
            if measure.denominator is None
            else np.nan_to_num(rows.columns[measure.denominator][some])
        )
        values[DENOMINATOR] += np.bincount(number, other, count)


def _make_segment(name: str, codes: NDArray, names: list[str]) -> Segment:
    """The values that most units have, and the others together."""
    counts = np.bincount(codes, minlength=MAX_CODES + 1)
    kept = [
        int(code)
        for code in np.argsort(-counts, kind="stable")[:MAX_VALUES]
        if counts[code] and code < MAX_CODES
    ]
    places = np.full(len(counts), len(kept))
    places[kept] = range(len(kept))
    values = [names[code] or "(empty)" for code in kept]
    has_others = counts.sum() > counts[kept].sum()
    return Segment(name, [*values, OTHERS] if has_others else values, places[codes])


def to_time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
