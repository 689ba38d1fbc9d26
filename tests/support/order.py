"""The order of the tests in a run with several workers, so that none of them waits for the others at the end."""

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import pytest


def servers_first(items: list[pytest.Item], workers: int) -> Iterator[pytest.Item]:
    """Each worker begins with its share of the files that start processes, and ends with short tests.

    Those it can take from another worker when it has no more of its own; what takes half a minute it cannot share.
    pytest-xdist gives each worker the same number of consecutive tests.
    """
    slow: dict[Path, list[pytest.Item]] = {}
    short = []
    for item in items:
        if item.get_closest_marker("processes"):
            slow.setdefault(item.path, []).append(item)
        else:
            short.append(item)
    rest = iter(short)
    for worker in range(workers):
        size = len(items) * (worker + 1) // workers - len(items) * worker // workers
        mine = list(chain.from_iterable(list(slow.values())[worker::workers]))
        yield from mine
        yield from islice(rest, max(0, size - len(mine)))
    yield from rest
