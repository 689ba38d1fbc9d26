"""A flag, and one with a version to revert to."""

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from projects.flags.actions import NewFlag, create_flag, update_flag
from projects.flags.environments import actions as environments
from projects.models import Flag, Project
from tests.support.flags import make_flag

SYSTEM = Caller.system()


@pytest.fixture
def cart(shop: Project) -> Flag:
    return make_flag("cart")


@pytest.fixture
def created(shop: Project) -> int:
    """The event after which the flag cart was off and had no description."""
    create_flag("shop", NewFlag(name="cart"), caller=SYSTEM)
    event = AuditEvent.objects.latest("id").pk
    environments.enable_flag("shop", "cart", "production", caller=SYSTEM)
    update_flag("shop", "cart", {"description": "New"}, caller=SYSTEM)
    return event
