"""Fixtures for the tests of polls and of browsers."""

from typing import Any

import pytest

from tests.support.cast import client, make_token
from tests.support.polling import polled_secret, polling_routes

__all__ = ["polled_secret", "polling_routes"]


@pytest.fixture
def web(db: None) -> Any:
    """A browser with a token for development of the default project."""
    return client(make_token("frontend", projects=["default"], environment="development"))
