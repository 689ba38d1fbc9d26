"""Fixtures that every test may use."""

from tests.cast import api, callers, people, shop

__all__ = ["api", "callers", "people", "shop"]
