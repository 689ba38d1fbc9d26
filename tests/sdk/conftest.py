"""Fixtures for the tests of polls."""

from tests.support.polling import polled_secret, polling_routes

__all__ = ["polled_secret", "polling_routes"]
