"""What SCIM needs is imported before the first request, where SCIM is used."""

import sys

import pytest

from groups.access import Caller
from groups.scim.actions import set_enabled
from groups.scim.preload import _import_if_used

SERVICE = "groups.scim.service"


@pytest.mark.parametrize("is_used", [False, True])
@pytest.mark.django_db
def test_only_installations_that_use_it_import_it(is_used, monkeypatch):
    monkeypatch.delitem(sys.modules, SERVICE, raising=False)
    monkeypatch.delattr("groups.scim.service", raising=False)
    monkeypatch.setattr("groups.scim.preload.connections.close_all", lambda: None)
    set_enabled(is_used, caller=Caller.system())
    _import_if_used()
    assert (SERVICE in sys.modules) == is_used
