"""Collects the metrics of all processes."""

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prometheus_client import Metric
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from flagadmin.core.metrics.processes import is_alive


class AllProcesses(Collector):
    """Adds up the files of a directory. Gauges only of processes that are alive.

    prometheus_client's own collector decodes the JSON key of every number at each scrape, which takes as long as all
    the rest. This one keeps them. It knows only what we use: gauges have a label ``process``, so they are not added.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._decoded: dict[str, Any] = {}

    def collect(self) -> Iterable[Metric]:
        metrics: dict[str, Metric] = {}
        for kind, sums in self._sum().items():
            below = 0.0  # of the histogram's smaller buckets: they come one after the other
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
        """The metric's name, that of the line, its labels, and the help text."""
        decoded = self._decoded.get(key)
        if decoded is None:
            decoded = self._decoded[key] = json.loads(key)
        return decoded
