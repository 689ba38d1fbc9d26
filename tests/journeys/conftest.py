"""People who walk through the console without JavaScript, among the scenery that the browser tests have too."""

from collections.abc import Callable

import pytest

from groups.models import User
from groups.permissions import BuiltIn
from tests.support.cast import make_user
from tests.support.scenery import scenery
from tests.support.walks import Walk

__all__ = ["scenery"]

ROOT_ROLES = {"admin": BuiltIn.ADMIN, "editor": BuiltIn.EDITOR, "viewer": BuiltIn.VIEWER}


@pytest.fixture
def walk(db: None) -> Callable[[str | None, str], Walk]:
    """``walk("admin", "/projects/")``: somebody of this name on this page; None is logged out."""

    def begin(who: str | None, address: str) -> Walk:
        if who is None:
            return Walk(None, address)
        user = User.objects.filter(username=who).first() or make_user(who, root_role=ROOT_ROLES.get(who))
        return Walk(user, address)

    return begin
