"""The installation of `manage.py demo`, made once for all tests of a module."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from flagadmin.demo.load import load_demo
from groups.models import User


@pytest.fixture(scope="module")
def loaded_demo(django_db_setup: None, django_db_blocker: Any) -> Iterator[User]:
    """Its admin. What a test changes is undone after it, the rest after the last test of the module."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield load_demo()
        transaction.set_rollback(True)
