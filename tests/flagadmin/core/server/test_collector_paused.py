"""The garbage collector stays paused as long as any thread needs it to be."""

import gc
import threading

import pytest

import flagadmin.core.server.memory
from flagadmin.core.server.memory import collector_paused
from tests.support.live_server import PATIENCE


@pytest.fixture(autouse=True)
def _no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever pauses inside for long gives the collector a turn."""
    monkeypatch.setattr(flagadmin.core.server.memory, "monotonic", lambda: 100.0)


def test_it_is_on_again_when_the_last_one_leaves() -> None:
    with collector_paused:
        with collector_paused:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_leaves_nothing_behind() -> None:
    with pytest.raises(KeyError), collector_paused:
        raise KeyError
    assert gc.isenabled()


def test_threads_do_not_end_it_for_each_other() -> None:
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with collector_paused:
            entered.set()
            assert leave.wait(PATIENCE)

    thread = threading.Thread(target=other)
    thread.start()
    assert entered.wait(PATIENCE)
    with collector_paused:
        pass
    assert not gc.isenabled()

    leave.set()
    thread.join()
    assert gc.isenabled()


def test_where_somebody_is_always_inside_it_has_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(flagadmin.core.server.memory, "monotonic", lambda: now)
    with collector_paused:
        now += flagadmin.core.server.memory.MAX_PAUSE - 1
        with collector_paused:
            pass
        assert not gc.isenabled()
        now += 2
        with collector_paused:
            pass
        assert gc.isenabled()
        with collector_paused:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
