"""What all processes have counted, in Prometheus' text format."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from threading import Lock

from flagadmin.metrics.instruments import Gauge, Histogram, Instrument, instruments
from flagadmin.metrics.store import SIZE, Key, Readout

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class Series:
    """One combination of labels: the beginnings of its lines, and where its values are.

    ``places`` are pairs: a file, and the index of the first value. A gauge has one, as each process has its own.
    """

    begins: list[str]
    width: int
    places: list[tuple[Readout, int]] = field(default_factory=list)

    def lines(self, values: dict[Readout, list[float]]) -> Iterator[str]:
        numbers = [0.0] * self.width
        for file, place in self.places:
            own = values[file][place : place + self.width]
            numbers = [a + b for a, b in zip(numbers, own, strict=True)]
        if self.width > 1:
            *counts, total = numbers
            numbers = [*accumulate(counts), total, sum(counts)]
        return (f"{begin} {number}" for begin, number in zip(self.begins, numbers, strict=True))


class Exposition:
    """The text of all files of a directory. Only what is new in them and the numbers are read each time."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[Path, Readout] = {}
        self._series: dict[str, dict[Key, Series]] = {}
        self._lock = Lock()

    def text(self) -> str:
        """Gauges only of processes that are alive."""
        with self._lock:
            self._find()
            values = {file: file.values() for file in self._files.values()}
            alive = {file: own for file, own in values.items() if file.is_alive()}
            return "".join(f"{line}\n" for line in self._lines(values, alive))

    def _lines(self, values: dict[Readout, list[float]], alive: dict[Readout, list[float]]) -> Iterator[str]:
        for name, instrument in instruments.items():
            if found := self._series.get(name):
                yield f"# HELP {name} {instrument.text}"
                yield f"# TYPE {name} {instrument.kind}"
                if isinstance(instrument, Gauge):
                    found = {key: series for key, series in found.items() if series.places[0][0] in alive}
                for series in found.values():
                    yield from series.lines(values)

    def _find(self) -> None:
        for path in sorted(self._directory.iterdir()):
            if path not in self._files and path.stat().st_size == SIZE:
                self._files[path] = Readout(path)
        for file in self._files.values():
            for (name, *labels), place, width in file.new_records():
                if instrument := instruments.get(name):
                    key = (*labels, file.process) if isinstance(instrument, Gauge) else tuple(labels)
                    found = self._series.setdefault(name, {})
                    if key not in found:
                        found[key] = Series(list(_begins(instrument, key)), width)
                    found[key].places.append((file, place))


def _begins(instrument: Instrument, labels: Key) -> Iterator[str]:
    """The lines of a series without their numbers."""
    name = instrument.name
    pairs = [
        f'{label}="{_escaped(value)}"' for label, value in zip(instrument.all_labels, labels, strict=True)
    ]
    if isinstance(instrument, Histogram):
        for bound in (*instrument.bounds, "+Inf"):
            limit = f'le="{bound}"'
            yield f"{name}_bucket{_braced([*pairs, limit])}"
        yield f"{name}_sum{_braced(pairs)}"
        yield f"{name}_count{_braced(pairs)}"
    else:
        yield f"{name}{_braced(pairs)}"


def _braced(pairs: list[str]) -> str:
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
