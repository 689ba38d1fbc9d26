"""Fixtures of the tests of delta and streaming."""

from collections.abc import Iterator

import pytest

from sdk.delta.states import states
from sdk.features.api import cache


@pytest.fixture(autouse=True)
def fresh_worker() -> Iterator[None]:
    """As after the start of a worker."""
    states.clear()
    cache.clear()
    yield
    states.clear()
    cache.clear()
