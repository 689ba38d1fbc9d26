"""What several processes count is added up."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from flagadmin.core import metrics
from flagadmin.core.metrics import AllProcesses
from tests.support.metrics import Values, values_of


class Process:
    """One that counts: its instruments are its own."""

    def __init__(self, role: str) -> None:
        metrics._names.clear()
        metrics.attach(role)
        self.name, self._lock = metrics._names.popitem()
        self._values = values.ValueClass
        registry = CollectorRegistry()
        self.plain = Counter("flagadmin_plain_total", "Without labels.", registry=registry)
        self._counter = Counter("flagadmin_t_total", "Tests.", ["result"], registry=registry)
        self._seconds = Histogram("flagadmin_t_seconds", "Time.", ["of"], registry=registry, buckets=(0.5, 1))
        self._gauge = Gauge("flagadmin_t_bytes", "Size.", ["of", "process"], registry=registry)

    def inc(self, result: str, by: float = 1) -> None:
        values.ValueClass = self._values
        self._counter.labels(result).inc(by)

    def observe(self, value: float, of: str) -> None:
        values.ValueClass = self._values
        self._seconds.labels(of).observe(value)

    def set(self, value: float) -> None:
        values.ValueClass = self._values
        self._gauge.labels("cache", self.name).set(value)

    def end(self) -> None:
        self._lock.close()


Start = Callable[[str], Process]


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """``start("worker")`` is a process that ends with the test at the latest."""
    started: list[Process] = []

    def begin(role: str) -> Process:
        started.append(Process(role))
        return started[-1]

    yield begin
    for process in started:
        process.end()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(metrics.DIRECTORY, str(tmp_path))
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    monkeypatch.setattr(metrics, "_names", {})
    monkeypatch.setattr(metrics, "REGISTRY", CollectorRegistry())
    return tmp_path


@pytest.fixture
def told(folder: Path) -> Callable[[], Values]:
    collector = AllProcesses(folder)
    return lambda: counted_by(collector)


def counted_by(collector: Collector) -> Values:
    """Without zeros."""
    return {name: value for name, value in values_of(generate_latest(collector).decode()).items() if value}


def test_counts_of_all_processes_are_added_up(start: Start, told: Callable[[], Values]) -> None:
    one, other = start("worker"), start("worker")
    one.inc("good")
    assert told()['flagadmin_t_total{result="good"}'] == 1
    other.inc("good", 2)
    other.inc('a "b"\\\n')
    other.plain.inc()
    assert told() == {
        'flagadmin_t_total{result="good"}': 3,
        r'flagadmin_t_total{result="a \"b\"\\\n"}': 1,
        "flagadmin_plain_total": 1,
    }


def test_it_tells_what_the_librarys_own_collector_tells(
    folder: Path, start: Start, told: Callable[[], Values]
) -> None:
    one, other = start("worker"), start("worker")
    other.observe(0.7, "b")
    for process in (one, other):
        process.inc("good")
        for value in (0.1, 0.5, 0.7, 3.0):
            process.observe(value, "a")
            process.observe(value * 2, "b")
    found = told()
    assert found['flagadmin_t_seconds_bucket{le="1.0",of="a"}'] == 6
    assert found['flagadmin_t_seconds_bucket{le="1.0",of="b"}'] == 5
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(folder))
    assert found == counted_by(registry)


def test_a_gauge_ends_with_its_process(start: Start, told: Callable[[], Values]) -> None:
    workers = [start("worker"), start("worker"), start("main")]
    for number, process in enumerate(workers, 1):
        process.set(number)
    assert told() == {
        f'flagadmin_t_bytes{{of="cache",process="{name}"}}': number
        for number, name in enumerate(("worker-1", "worker-2", "main-1"), 1)
    }
    workers[1].end()
    assert len(told()) == 2


def test_a_process_goes_on_where_the_one_before_it_ended(start: Start, told: Callable[[], Values]) -> None:
    _, killed = start("worker"), start("worker")
    killed.plain.inc()
    killed.end()
    successor = start("worker")
    assert successor.name == "worker-2"
    successor.plain.inc()
    assert told() == {"flagadmin_plain_total": 2}


def test_what_was_declared_before_a_fork_counts_in_it(start: Start, told: Callable[[], Values]) -> None:
    plain = Counter("flagadmin_early_total", "Without labels.", registry=metrics.REGISTRY)
    labeled = Counter("flagadmin_kept_total", "Tests.", ["result"], registry=metrics.REGISTRY).labels("good")
    plain.inc()
    start("worker")
    plain.inc()
    labeled.inc(2)
    assert told() == {"flagadmin_early_total": 1, 'flagadmin_kept_total{result="good"}': 2}


def test_a_disk_that_fills_up_later_has_the_space(folder: Path, start: Start) -> None:
    start("worker")
    files = list(folder.glob("*.db"))
    assert {path.stem for path in files} == {f"{kind}_worker-1" for kind in metrics.KINDS}
    assert [path.stat().st_blocks * 512 >= metrics.SIZE for path in files] == [True] * 3


def test_numbers_beyond_that_space_are_kept_too(
    folder: Path, start: Start, told: Callable[[], Values]
) -> None:
    process = start("worker")
    for number in range(3_000):
        process.inc(f"{number:0300}")
    assert len(told()) == 3_000
    assert (folder / "counter_worker-1.db").stat().st_size > metrics.SIZE


def test_without_begin_nothing_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(metrics.DIRECTORY)
    metrics.attach("worker")
    assert list(folder.iterdir()) == []
    assert metrics.process_name() == "main-1"
