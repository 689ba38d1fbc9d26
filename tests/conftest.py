"""Fixtures that every test may use."""

from tests.cast import api, browse, callers, people, shop
from tests.sdk import sdk

__all__ = ["api", "browse", "callers", "people", "sdk", "shop"]
