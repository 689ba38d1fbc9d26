"""Fixtures of requests, plans and schedules."""

from typing import Any

import pytest

from projects.models import Flag
from tests.support.change_requests import guarded
from tests.support.plans import pass_time
from tests.support.playground import live_flag

__all__ = ["pass_time"]


@pytest.fixture
def cart(shop: Any) -> Flag:
    """On for everybody in production, where a change needs one approval."""
    guarded(1)
    return live_flag("cart", strategies=[{"name": "default"}])
