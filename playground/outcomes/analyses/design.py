"""What an analysis asks: of which time, per which unit, and which columns of the table measure what came of it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Self, get_args

from flagadmin.core.errors import Problem, check_problems
from flagadmin.core.http.responses import iso
from flagadmin.core.wording import choices
from playground.outcomes import experiment
from playground.outcomes.experiment import BEFORE, Measure, Method
from playground.outcomes.experiment.design import Kind

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
