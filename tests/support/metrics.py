"""Counting in tests, which otherwise count no requests."""

import re
from collections.abc import Callable

import pytest
from prometheus_client import REGISTRY, generate_latest

Values = dict[str, float]


@pytest.fixture
def counted(settings) -> Callable[[], Values]:
    """``counted()`` is what this process has counted since the test began, and the gauges as they are."""
    settings.METRICS_TOKEN = "a-token-for-prometheus"
    before = now()
    return lambda: {
        name: value - (0 if "process=" in name else before.get(name, 0))
        for name, value in now().items()
        if "process=" in name or value != before.get(name, 0)
    }


def now() -> Values:
    return values_of(generate_latest(REGISTRY).decode())


def values_of(text: str) -> Values:
    """The numbers of an exposition by their names and labels."""
    return {name: float(value) for name, value in re.findall(r"^(flagadmin_.*) (\S+)$", text, re.MULTILINE)}
