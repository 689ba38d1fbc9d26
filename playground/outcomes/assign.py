"""Says for each row of a table what it had of a flag at its time, since when, and by which change.

A flag changes a few dozen times in a month. Each state is evaluated for all rows of a chunk at once; hashes and
conditions that two states share are computed once. Tests compare each row with the playground of its moment.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any

from flagadmin.core.http.responses import iso
from playground.comparison.results import ALWAYS_OFF, ONE, UNKNOWN, Shares, drop_payloads
from playground.comparison.table import Mask
from playground.engine.outcomes import State
from playground.outcomes.history import FlagHistory
from playground.outcomes.partial import PartialResults, RowTable
from projects.models.versions import BEGINNING

ALWAYS_UNKNOWN: Shares = ((UNKNOWN, ONE),)
COLUMNS = ("result", "variant", "since", "change", "lacks")
Cells = tuple[str, str, str, str, str]


class Result(StrEnum):
    """``RANDOM``: drawn on each call. ``IN_BETWEEN``: an application may not have noticed the change yet."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"
    RANDOM = "random"
    IN_BETWEEN = "in between"


class Assigner:
    """Assigns one flag to the rows of tables. ``lag`` is how long applications may take to notice a change."""

    def __init__(self, history: FlagHistory, lag: timedelta) -> None:
        self._history, self._lag = history, lag
        self._heads: dict[tuple[Shares, int], Cells] = {}
        self.results: Counter[str] = Counter()
        self.lacking: Counter[str] = Counter()
        """By field, the rows that are unknown because the table lacks it, or another."""

    def assign(self, table: RowTable) -> list[Cells]:
        """The cells of COLUMNS for each row."""
        rows_by_state: dict[int, list[int]] = defaultdict(list)
        for row, time in enumerate(table.times):
            rows_by_state[self._history.count_states_at(time)].append(row)
        cells: list[Any] = [None] * len(table)
        since = _Since(table)
        for state in range(max(rows_by_state) + 1):
            results, lacking = self._evaluate(state, table)
            since.change(state, results)
            if rows := rows_by_state.get(state):
                inside = _make_mask(rows, len(table))
                for shares, mask in results.items():
                    for row in table.positions(mask & inside):
                        cells[row] = self._make_cells(shares, since, row, lacking)
                since.left &= ~inside
        return cells

    def summarize(self) -> dict[str, Any]:
        return {
            "name": self._history.name,
            "results": {result.value: self.results[result] for result in Result},
            "lacks": dict(self.lacking.most_common()),
        }

    def _evaluate(self, state: int, table: RowTable) -> tuple[dict[Shares, Mask], list[str]]:
        """The rows by their answers, without payloads, and the fields that some of them lack."""
        if state == 0:
            return {ALWAYS_OFF: table.everyone}, []
        snapshot = self._history.snapshots[state - 1]
        if snapshot is None:
            return {ALWAYS_UNKNOWN: table.everyone}, []
        found = PartialResults(snapshot, table, self._history.name)
        results: dict[Shares, Mask] = defaultdict(int)
        for shares, mask in found.results(self._history.name).items():
            is_unknown = any(answer.state is State.UNKNOWN for answer, _ in shares)
            results[ALWAYS_UNKNOWN if is_unknown else drop_payloads(shares)] |= mask
        return results, found.lacking

    def _make_cells(self, shares: Shares, since: _Since, row: int, lacking: list[str]) -> Cells:
        if shares == ALWAYS_UNKNOWN:
            self.results[Result.UNKNOWN] += 1
            self.lacking.update(lacking)
            return Result.UNKNOWN, "", "", "", ", ".join(lacking)
        state = since.states[row]
        began = self._history.moments[state - 1] if state else BEGINNING
        is_known = began > BEGINNING and not since.doubtful[row]
        head = self._make_head(shares, state if is_known else 0)
        if state and since.table.times[row] - began < self._lag:
            head = (Result.IN_BETWEEN, "", *head[2:])
        self.results[head[0]] += 1
        return head

    def _make_head(self, shares: Shares, state: int) -> Cells:
        """``state`` 0: it is not known since when."""
        head = self._heads.get((shares, state))
        if head is None:
            [(answer, _), *others] = shares
            result = Result.RANDOM if others else Result(answer.state.value)
            variant = "" if others else answer.variant or ""
            since = (iso(self._history.moments[state - 1]), self._history.changes[state - 1])
            head = self._heads[shares, state] = (result, variant, *(since if state else ("", "")), "")
        return head


class _Since:
    """The state since which each row has had its answer, 0 if always; rows in ``left`` are still to be assigned.

    A row is ``doubtful`` if its answer before that state is unknown: it may have had the same.
    """

    def __init__(self, table: RowTable) -> None:
        self.table = table
        self.left = table.everyone
        self.states = array("I", bytes(4 * len(table)))
        self.doubtful = bytearray(len(table))
        self._earlier: dict[Shares, Mask] = {ALWAYS_OFF: table.everyone}

    def change(self, state: int, results: dict[Shares, Mask]) -> None:
        same = 0
        for shares, mask in results.items():
            same |= mask & self._earlier.get(shares, 0)
        unknown = self._earlier.get(ALWAYS_UNKNOWN, 0)
        for is_doubtful, mask in ((0, ~unknown), (1, unknown)):
            for row in self.table.positions(self.left & ~same & mask):
                self.states[row], self.doubtful[row] = state, is_doubtful
        self._earlier = results


def _make_mask(rows: Sequence[int], length: int) -> Mask:
    chosen = bytearray(length)
    for row in rows:
        chosen[row] = 1
    return int.from_bytes(chosen, "little")
