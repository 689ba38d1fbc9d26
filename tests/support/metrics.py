"""Counting in tests, which otherwise count nothing."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flagadmin.metrics.instruments import DIRECTORY, Instrument
from flagadmin.metrics.store import Store
from flagadmin.metrics.text import Exposition

Values = dict[str, float]


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Values]]:
    """``counted()`` is what this process has counted since the test began."""
    folder = tmp_path / "metrics"
    folder.mkdir()
    store = Store(folder, "worker")
    monkeypatch.setenv(DIRECTORY, str(folder))
    monkeypatch.setattr(Instrument, "store", store)
    exposition = Exposition(folder)
    yield lambda: values_of(exposition.text())
    monkeypatch.undo()
    store.close()


def values_of(text: str) -> Values:
    """The numbers of an exposition by their names and labels."""
    return {name: float(value) for name, value in re.findall(r"^([^#\s].*) (\S+)$", text, re.MULTILINE)}
