"""The installation of `manage.py demo`, made once for all tests of a module."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
from django.db import transaction

from flagadmin.demo.load import load_demo
from groups.models import User

T = TypeVar("T")


@contextmanager
def made_once(make: Callable[[], T], django_db_blocker: Any) -> Iterator[T]:
    """For a fixture of a module: a test's changes are undone after it, and these rows after the last test."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield make()
        transaction.set_rollback(True)


@pytest.fixture(scope="module")
def loaded_demo(django_db_setup: None, django_db_blocker: Any) -> Iterator[User]:
    """Its admin."""
    with made_once(load_demo, django_db_blocker) as admin:
        yield admin
