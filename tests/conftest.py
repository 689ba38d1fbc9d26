"""Fixtures that every test may use."""

import gc
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.support.cast import api, browse, callers, people, shop, standing_clock
from tests.support.installations import install
from tests.support.metrics import counted
from tests.support.sdk import sdk

__all__ = ["api", "browse", "callers", "counted", "install", "people", "sdk", "shop", "standing_clock"]


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What has been imported stays: without this, the garbage collector would look through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Tests that commit are undone quickly, on the bundled server."""
    from django.conf import settings

    from tests.support.emptying import quick_emptying

    with ExitStack() as stack:
        if not settings.DATABASE_URL:
            with django_db_blocker.unblock():
                stack.enter_context(quick_emptying())
        yield
