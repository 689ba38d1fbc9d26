"""Fixtures that every test may use."""

from tests.support.cast import api, browse, callers, people, shop, standing_clock
from tests.support.sdk import sdk

__all__ = ["api", "browse", "callers", "people", "sdk", "shop", "standing_clock"]
