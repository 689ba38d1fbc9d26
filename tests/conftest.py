"""Fixtures that every test may use."""

import gc
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import settings

from tests.support import costs, examples, forked  # noqa: F401 - examples registers the profile
from tests.support.cast import api, browse, callers, people, shop, standing_clock
from tests.support.costs import pytest_sessionfinish, pytest_terminal_summary
from tests.support.forked import pytest_runtestloop
from tests.support.installations import install
from tests.support.metrics import counted
from tests.support.moments import with_own_moment
from tests.support.preloading import MANY, preload
from tests.support.sdk import sdk
from tests.support.served import running_server, served

__all__ = [
    "api", "browse", "callers", "counted", "install", "people", "pytest_runtestloop", "pytest_sessionfinish",
    "pytest_terminal_summary", "running_server", "sdk", "served", "shop", "standing_clock",
]  # fmt: skip


settings.load_profile("repeatable")
gc.disable()  # until everything is imported


def pytest_addoption(parser: pytest.Parser) -> None:
    forked.add_options(parser)
    costs.add_options(parser)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """What has been imported stays: without this, the garbage collector would look through it again and again."""
    if session.config.getoption("forks") and len(session.items) >= MANY:
        preload()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def own_count_of_commits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Other workers of the test run have databases of their own, but the same data directory."""
    from flagadmin.core.db import commits

    with (
        (tmp_path_factory.mktemp("commits") / "commits").open("ab") as file,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(commits, "_open_file", file.fileno)
        yield


@pytest.fixture(scope="session", autouse=True)
def every_action_has_its_moment() -> Iterator[None]:
    """In a test that is one transaction, each action still gets the time of its events from the clock of the test."""
    from flagadmin.core.db import transactions

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transactions, "_to_its_end", with_own_moment(transactions._to_its_end))
        yield


@pytest.fixture(autouse=True)
def remembered_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered of the installation's settings is that of a new one, until the test changes them."""
    from flagadmin.core.installation import state

    monkeypatch.setattr(state, "_remembered", state._Remembered(until=float("inf")))


@pytest.fixture
def no_earlier_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker notes a few refused requests in a second, and those of other tests would be the first."""
    from projects.connect.queries import refusals

    monkeypatch.setattr(refusals, "_noted", {})


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, django_db_blocker: Any
) -> None:
    """On the bundled server, the test database is a copy of one that is migrated already."""
    from django.conf import settings

    from tests.support.migrated_database import use_migrated_database

    if not settings.DATABASE_URL:
        with django_db_blocker.unblock():
            use_migrated_database(settings.DATA_DIR)


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
