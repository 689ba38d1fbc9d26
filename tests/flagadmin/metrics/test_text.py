"""What processes count is added up, and told in Prometheus' text format."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flagadmin.metrics import instruments, store
from flagadmin.metrics.instruments import Counter, Gauge, Histogram, Instrument
from flagadmin.metrics.store import Store
from flagadmin.metrics.text import Exposition
from tests.support.metrics import values_of


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[list[Store]]:
    opened = [Store(tmp_path, "worker"), Store(tmp_path, "worker")]
    yield opened
    for one in opened:
        one.close()


@pytest.fixture
def by_process(monkeypatch: pytest.MonkeyPatch, stores: list[Store]) -> Callable[[int, Callable], None]:
    """``by_process(1, counter.inc)`` counts as the second of two processes."""

    def count(number: int, action: Callable) -> None:
        monkeypatch.setattr(Instrument, "store", stores[number])
        action()
        monkeypatch.setattr(Instrument, "store", None)

    return count


@pytest.fixture(autouse=True)
def _forget_instruments() -> Iterator[None]:
    """What a test declares is gone afterwards."""
    known = dict(instruments.instruments)
    yield
    instruments.instruments.clear()
    instruments.instruments.update(known)


def test_counts_of_all_processes_are_added_up(tmp_path: Path, by_process) -> None:
    counter = Counter("t_total", "Tests.", "result")
    exposition = Exposition(tmp_path)
    by_process(0, lambda: counter.inc("good"))
    assert exposition.text() == '# HELP t_total Tests.\n# TYPE t_total counter\nt_total{result="good"} 1.0\n'
    by_process(1, lambda: counter.inc("good", by=2))
    by_process(1, lambda: counter.inc('a "b"\\\n'))
    counter.inc("good")  # not attached
    assert values_of(exposition.text()) == {
        't_total{result="good"}': 3,
        r't_total{result="a \"b\"\\\n"}': 1,
    }


def test_a_histogram_counts_what_is_at_most_a_bound(tmp_path: Path, by_process) -> None:
    histogram = Histogram("t_seconds", "Time.", bounds=(0.5, 1.0))
    for value in (0.1, 0.5, 0.7, 3.0):
        by_process(0, lambda value=value: histogram.observe(value))
    by_process(1, lambda: histogram.observe(1.0))
    assert values_of(Exposition(tmp_path).text()) == {
        't_seconds_bucket{le="0.5"}': 2,
        't_seconds_bucket{le="1.0"}': 4,
        't_seconds_bucket{le="+Inf"}': 5,
        "t_seconds_sum": 5.3,
        "t_seconds_count": 5,
    }


def test_a_gauge_is_of_a_process_and_ends_with_it(tmp_path: Path, stores: list[Store], by_process) -> None:
    gauge = Gauge("t_bytes", "Size.", "of")
    exposition = Exposition(tmp_path)
    for number in (0, 1):
        by_process(number, lambda number=number: gauge.set(number, "cache"))
    assert values_of(exposition.text()) == {
        't_bytes{of="cache",process="worker-1"}': 0,
        't_bytes{of="cache",process="worker-2"}': 1,
    }
    stores.pop().close()
    assert values_of(exposition.text()) == {'t_bytes{of="cache",process="worker-1"}': 0}


def test_a_process_goes_on_where_the_one_before_it_ended(
    tmp_path: Path, stores: list[Store], by_process
) -> None:
    counter = Counter("t_total", "Tests.")
    exposition = Exposition(tmp_path)
    by_process(1, counter.inc)
    assert values_of(exposition.text()) == {"t_total": 1}
    stores[1].close()
    stores[1] = Store(tmp_path, "worker")
    assert stores[1].process == "worker-2"
    by_process(1, counter.inc)
    assert values_of(exposition.text()) == {"t_total": 2}


def test_a_disk_that_fills_up_later_has_the_space(tmp_path: Path, stores: list[Store]) -> None:
    assert [path.stat().st_blocks * 512 >= store.SIZE for path in tmp_path.iterdir()] == [True, True]


def test_a_full_file_keeps_what_it_has(tmp_path: Path, by_process, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = Counter("t_total", "Tests.", "name")
    by_process(0, lambda: counter.inc("first"))
    for number in range(store.SIZE // 100):
        by_process(0, lambda number=number: counter.inc(f"{number:0100}"))
    by_process(0, lambda: counter.inc("first"))
    values = values_of(Exposition(tmp_path).text())
    assert values['t_total{name="first"}'] == 2
    assert 10_000 < len(values) < store.SIZE // 100
