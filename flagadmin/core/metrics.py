"""Metrics for Prometheus. prometheus_client's instruments are declared beside the code that counts:

    IMPORTS = Counter("flagadmin_imports_total", "Imports.", ["result"])
    IMPORTS.labels("refused").inc()

Labels must have few values: each combination is kept for good. A gauge has a label `process`, because each process has
its own value (`docs/decisions/metrics.md`).

Each process counts in its own files, all in one directory: prometheus_client's multiprocess mode. Processes have names
such as ``worker-1`` instead of their ids, so that the replacement of a killed process takes over its files and
continues counting.
"""

import fcntl
import json
import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any, TextIO

from prometheus_client import REGISTRY, Metric, values
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"  # the name that prometheus_client reads
KINDS = ("counter", "gauge_all", "histogram")  # file names given by prometheus_client
SIZE = 1_000_000  # initial size of a file in bytes

_names: dict[str, TextIO] = {}  # this process's only name, with its locked file


def begin(directory: Path) -> None:
    """Makes forks of this process that attach count from 0 in this directory. Raises OSError."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True, mode=0o700)
    os.environ[DIRECTORY] = str(directory)


def attach(role: str) -> None:
    """Makes this process count, if :func:`begin` was called, under a name that begins with its role.

    Earlier counts are lost.
    """
    if (directory := os.environ.get(DIRECTORY)) and not _names:
        name, lock = _claim(Path(directory), role)
        _names[name] = lock
        for kind in KINDS:
            _take_space(Path(directory) / f"{kind}_{name}.db")
        values.ValueClass = values.MultiProcessValue(lambda: name)
        for instrument in list(REGISTRY._collector_to_names):
            if isinstance(instrument, MetricWrapperBase):
                _count_anew(instrument)


def _count_anew(instrument: MetricWrapperBase) -> None:
    for counting in instrument._metrics.values() if instrument._labelnames else [instrument]:
        counting._metric_init()


def process_name() -> str:
    return next(iter(_names), "main-1")


def is_alive(directory: Path, name: str) -> bool:
    with (directory / f"{name}.lock").open() as file:
        return not _locks(file, fcntl.LOCK_SH)


def _claim(directory: Path, role: str) -> tuple[str, TextIO]:
    """The first name that no living process holds."""
    for number in count(1):
        name = f"{role}-{number}"
        file = (directory / f"{name}.lock").open("a")
        if _locks(file, fcntl.LOCK_EX):
            return name, file
        file.close()
    raise AssertionError


def _locks(file: TextIO, how: int) -> bool:
    """Locks the file. The lock ends when the file is closed, or with the process."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _take_space(path: Path) -> None:
    """Allocates the file: a write to a mapped file on a full disk would kill the process."""
    with path.open("ab") as file:
        os.posix_fallocate(file.fileno(), 0, SIZE)


_samplers: list[Callable[[], None]] = []


def register_sampler(sampler: Callable[[], None]) -> Callable[[], None]:
    """A decorator: ``sampler`` sets gauges, every few seconds in each process that serves."""
    _samplers.append(sampler)
    return sampler


def sample() -> None:
    for sampler in _samplers:
        sampler()


class AllProcesses(Collector):
    """Adds up the files of a directory, and includes gauges only of living processes.

    prometheus_client's own collector decodes the JSON key of every number at each scrape, which doubles the time. This
    one caches them. It supports only our use: gauges have a label ``process``, so they are not added.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._decoded: dict[str, Any] = {}

    def collect(self) -> Iterable[Metric]:
        metrics: dict[str, Metric] = {}
        for kind, sums in self._sum().items():
            below = 0.0  # sum of the histogram's smaller buckets, which precede it
            for key, value in sums.items():
                name, line, labels, text = self._decode(key)
                metric = metrics.get(name) or metrics.setdefault(name, Metric(name, text, kind))
                if "le" in labels:
                    below = value = value + below
                metric.samples.append(Sample(line, labels, value))
                if labels.get("le") == "+Inf":
                    others = {label: labels[label] for label in labels if label != "le"}
                    metric.samples.append(Sample(f"{name}_count", others, value))
                    below = 0.0
        return metrics.values()

    def _sum(self) -> dict[str, dict[str, float]]:
        """The number of each key, by kind of metric."""
        sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for path in sorted(self._directory.glob("*.db")):
            kind, process = path.stem.split("_", 1)[0], path.stem.rpartition("_")[2]
            if kind != "gauge" or is_alive(self._directory, process):
                for key, value, _, _ in MmapedDict.read_all_values_from_file(path):
                    sums[kind][key] += value
        return sums

    def _decode(self, key: str) -> Any:
        """The metric's name, the line's name, its labels, and the help text."""
        decoded = self._decoded.get(key)
        if decoded is None:
            decoded = self._decoded[key] = json.loads(key)
        return decoded
