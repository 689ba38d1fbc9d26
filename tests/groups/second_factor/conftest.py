"""Anna has an authenticator app. The clock stands, so a code stays the present one however slow a test is."""

import pytest

from groups.permissions import BuiltIn
from tests.support.cast import make_user
from tests.support.second_factor import set_up_app

PASSWORD = "correct horse battery"


@pytest.fixture
def bert(standing_clock, db):
    """Has a password and no second factor."""
    return with_password("bert", BuiltIn.VIEWER)


@pytest.fixture
def anna(standing_clock, db):
    user = with_password("anna", BuiltIn.ADMIN)
    user.recovery_codes = set_up_app(user)
    return user


def with_password(name, role):
    return make_user(name, root_role=role, password=PASSWORD)
