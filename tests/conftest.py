"""Fixtures that every test may use."""

from tests.cast import api, callers, people, shop
from tests.sdk import sdk

__all__ = ["api", "callers", "people", "sdk", "shop"]
