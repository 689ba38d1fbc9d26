"""The installation in which the bodies of valid_bodies.py are valid."""

from typing import Any

import pytest

from projects.models import Dependency, Environment
from tests.flagadmin.security.world import build


@pytest.fixture
def world(shop: Any) -> Any:
    made = build(shop)
    Environment.objects.create(name="staging", type="test")
    Dependency.objects.all().delete()  # it would stand against a move
    return made


@pytest.fixture
def api(api: Any) -> Any:
    api["admin"]  # not made in what is undone
    return api
