"""Makes an analysis, beside the requests. Reads the table twice: who had which side, then what came of them."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from math import isfinite
from typing import IO, Any

from django.db.models import Q

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.sentences import make_sentence
from flagadmin.core.errors import Problem, ValidationError, choices
from flagadmin.core.http.responses import iso
from playground.models import Analysis
from playground.outcomes import experiment
from playground.outcomes.analyses.design import OFF, Design, Sides, Stratum, divides_by, list_dividing_fields
from playground.outcomes.experiment.design import MAX_SIDES
from playground.outcomes.history import FlagHistory, Sight, read_histories, read_now
from playground.outcomes.runs import MAX_CHANGES_OF_RUN, MAX_UNPACKED
from playground.outcomes.sql import spool_query
from playground.outcomes.table import Limits, Rows, Table
from playground.snapshot_cache import load_snapshot
from playground.user_runs.evaluate import finish_run, update_run

CHUNK = 20_000
"""Rows that are read together."""
MAX_INTERACTING = 20
IDS = ("userId", "sessionId")


def write_analysis(run: Analysis) -> None:
    """Raises ValidationError naming rows or columns, NotFound, TooLarge."""
    design, flag = Design.from_json(run.design), run.flag
    sight = Sight(frozenset(run.sight["projects"]), run.sight["withDeleted"])
    [history] = read_histories(sight, run.environment_id, [flag.name], max_changes=MAX_CHANGES_OF_RUN)
    with _open_source(run) as source:
        reading = Reading(run, design, history, source)
        shows_others = flag.project_id in sight.projects
        others = list_interacting(flag.project_id, run.environment_id, reading) if shows_others else []
        changes = list_changes(history, design, flag.project_id)
        result = reading.analyze(others)
    finish_run(run, rows=result["rows"], result=result | {"changes": changes})


@contextmanager
def _open_source(run: Analysis) -> Iterator[Callable[[], IO[bytes]]]:
    """Opens the table, as often as it is read. A query runs once, so that it gives the same rows each time."""
    if not (query := run.sight.get("query")):
        body = bytes(run.body)
        yield lambda: BytesIO(body)
        return
    with spool_query(query, MAX_UNPACKED) as open_again:
        yield open_again


@dataclass(frozen=True, slots=True)
class Split:
    """How units were divided. ``compared``: by state of the flag, the stratum whose rows are compared; of those of the
    others that ``divide``, too few had the same shares to compare them.
    """

    control: str
    phases: Sequence[experiment.Phase]
    compared: dict[int, int]
    dividing: set[int]


@dataclass(slots=True)
class Assigned:
    """For each row of the table in the period, its side (a number among ``names``; 0 is none) and its stratum."""

    sides: Sides
    names: list[str] = field(default_factory=lambda: [""])
    side_of: array[int] = field(default_factory=lambda: array("H"))
    stratum_of: array[int] = field(default_factory=lambda: array("I"))
    found: dict[int, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    """By state of the flag, the rows of each stratum."""
    rows: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def find_split(self, design: Design, history: FlagHistory) -> Split:
        """Raises ValidationError if no row is of a unit that was divided, or the control is not among the sides."""
        strata = list(self.sides.strata)
        dividing = {number for number, stratum in enumerate(strata) if len(stratum) > 1}
        seen = {number for counts in self.found.values() for number in counts} & dividing
        sides = sorted({side for number in seen for side, _ in strata[number]})
        if not sides:
            raise ValidationError(details=list(self._explain_nobody(history.name)))
        if len(sides) > MAX_SIDES:
            raise ValidationError.at(
                "flag", f"had {len(sides)} sides in the period; at most {MAX_SIDES} are compared"
            )
        if design.control and design.control not in sides:
            raise ValidationError.at(
                "control", f"must be one of {choices(sides)}, not {design.control[:100]}"
            )
        control = design.control or next((side for side in (OFF, "control") if side in sides), sides[0])
        compared = {number for number in seen if control in dict(strata[number])}
        chosen = {
            state: max(here, key=here.__getitem__)
            for state, counts in self.found.items()
            if (here := {number: counts[number] for number in counts if number in compared})
        }
        phases = _list_phases(design, history, {state: strata[number] for state, number in chosen.items()})
        return Split(control, phases, chosen, dividing)

    def _explain_nobody(self, name: str) -> Iterator[Problem]:
        if not self.rows:
            yield Problem("file", "has no row in the period")
        elif self.sides.lacking:
            yield Problem("file", f"lacks {choices(self.sides.lacking)}, on which {name} depends")
        else:
            yield Problem("file", f"has no users that {name} was splitting at the time")


def _list_phases(design: Design, history: FlagHistory, strata: dict[int, Stratum]) -> list[experiment.Phase]:
    """A phase for each change of the shares."""
    phases: list[experiment.Phase] = []
    for state in sorted(strata):
        shares = {side: float(share) for side, share in strata[state]}
        if not phases or shares != phases[-1].shares:
            began = history.moments[state - 1] if phases else design.since
            phases.append(experiment.Phase(max(began, design.since), shares))
    return phases


class Reading:
    """Reads the table of an analysis. The unit's column is chosen once the header is known."""

    def __init__(
        self, run: Analysis, design: Design, history: FlagHistory, source: Callable[[], IO[bytes]]
    ) -> None:
        self._run, self._design, self.history = run, design, history
        self._source, self._now = source, read_now()
        table = self._open()
        design.check_columns(table.columns)
        self.fields = list_dividing_fields(history, design.since, design.until)
        self.unit = choose_unit(design.unit, self.fields, table.fields)
        self._places = {name: table.columns.index(name) for name in design.columns}
        self._unit = table.fields.index(self.unit)

    def analyze(self, interacting: Sequence[str]) -> dict[str, Any]:
        """What came out, and who was left out. Raises ValidationError naming rows."""
        assigned = self.assign()
        split = assigned.find_split(self._design, self.history)
        design = self._design.make_experiment(split.phases, split.control, interacting)
        collector = experiment.collect(design)
        self.collect(collector, assigned, split)
        result: dict[str, Any] = experiment.to_document(experiment.analyse(collector))
        more = {
            "unit": self.unit,
            "rows": assigned.rows,
            "leftOut": dict(assigned.left_out),
            "lacks": dict(assigned.sides.lacking.most_common()),
        }
        return dict(_drop_infinite(result | more))

    def _open(self) -> Table:
        return Table(self._source(), until=self._now, limits=Limits(unpacked=MAX_UNPACKED))

    def assign(self) -> Assigned:
        """Reads the sides. Raises ValidationError naming rows."""
        table, assigned = self._open(), Assigned(Sides(self.history))
        numbers: dict[str, int] = {"": 0}
        read = 0
        for rows in table.chunks(CHUNK):
            read += len(rows.times)
            inside = self._find_inside(rows, assigned)
            cells, times = [rows.cells[row] for row in inside], [rows.times[row] for row in inside]
            sides, strata = assigned.sides.assign(table.fields, cells, times)
            assigned.side_of.extend(numbers.setdefault(side, len(numbers)) for side in sides)
            assigned.stratum_of.extend(strata)
            for time, stratum in zip(times, strata, strict=True):
                assigned.found[self.history.count_states_at(time)][stratum] += 1
            assigned.rows += len(inside)
            update_run(self._run, rows_done=read)
        assigned.names = list(numbers)
        assigned.left_out.update(assigned.sides.left_out)
        update_run(self._run, rows=read)
        return assigned

    def _find_inside(self, rows: Rows, assigned: Assigned) -> list[int]:
        """The rows of units in the period. Counts the others."""
        design, inside = self._design, []
        for row, time in enumerate(rows.times):
            if not rows.cells[row][self._unit]:
                assigned.left_out["noUnit"] += 1
            elif time >= design.until:
                assigned.left_out["outside"] += 1
            elif time >= design.since:
                inside.append(row)
        return inside

    def collect(self, collector: Any, assigned: Assigned, split: Split) -> None:
        """Reads the measures of the units that are compared. Raises ValidationError naming rows."""
        with_sides = zip(assigned.side_of, assigned.stratum_of, strict=True)
        since, until = self._design.since, self._design.until
        for rows in self._open().chunks(CHUNK):
            chosen: list[int] = []
            sides: list[str | None] = []
            for row, time in enumerate(rows.times):
                if time >= until or not rows.cells[row][self._unit]:
                    continue
                side = ""
                if time >= since:
                    number, stratum = next(with_sides)
                    side = assigned.names[number]
                    if side and split.compared.get(self.history.count_states_at(time)) != stratum:
                        assigned.left_out["otherShares" if stratum in split.dividing else "notDivided"] += 1
                        side = ""
                chosen.append(row)
                sides.append(side or None)  # A row without a side counts once its unit has one.
            self._add(collector, rows, chosen, sides)

    def _add(self, collector: Any, rows: Rows, chosen: list[int], sides: list[str | None]) -> None:
        cells = [rows.cells[row] for row in chosen]
        try:
            collector.add(
                [row[self._unit] for row in cells],
                sides,
                [rows.times[row] for row in chosen],
                {name: [row[place] for row in cells] for name, place in self._places.items()},
            )
        except experiment.BadCell as error:
            number = rows.numbers[chosen[error.row]]
            raise ValidationError.at(f"row {number}, column {error.column}", str(error)) from error


def choose_unit(asked: str, dividing: Sequence[str], columns: Sequence[str]) -> str:
    """The context field whose values are the units. Raises ValidationError with the valid ones."""
    allowed = [name for each in dividing for name in (IDS if each == "default" else (each,))]
    if asked and allowed and asked not in allowed:
        raise ValidationError.at(
            "unit", f"must be one of {choices(allowed)}, by which the flag divided its users"
        )
    if not asked and len(dividing) > 1:
        raise ValidationError.at("unit", f"must be named: the flag divided its users by {choices(dividing)}")
    unit = asked or next((name for name in allowed if name in columns), allowed[0] if allowed else IDS[0])
    if unit not in columns:
        raise ValidationError.at("file", f"has no column {unit}, by which the flag divided its users")
    return unit


def list_interacting(project: str, environment: str, reading: Reading) -> list[str]:
    """Other flags of the project that divide the same units now."""
    snapshot = load_snapshot([project], environment).snapshot
    own, fields = reading.history.name, set(reading.fields)
    names = (flag.name for flag in snapshot.flags if flag.name != own and fields & divides_by(flag))
    return sorted(names)[:MAX_INTERACTING]


def list_changes(history: FlagHistory, design: Design, project: str) -> list[dict[str, Any]]:
    """The changes of the flag in the period. One that was made in another project has no sentence."""
    moments = zip(history.moments, history.changes, strict=True)
    inside = [(at, change) for at, change in moments if design.since < at < design.until]
    ids = [int(change) for _, change in inside if change]
    events = AuditEvent.objects.filter(Q(project=project) | Q(project=None), pk__in=ids)
    sentences = {str(event.pk): make_sentence(event) for event in events}
    return [
        {"at": iso(at), "change": change or None, "sentence": sentences.get(change)} for at, change in inside
    ]


def _drop_infinite(value: Any) -> Any:
    """JSON has no infinity."""
    if isinstance(value, dict):
        return {key: _drop_infinite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_drop_infinite(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value
