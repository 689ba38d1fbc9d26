"""Groups that change once a login has looked up what its claim names."""

from collections.abc import Callable
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount

from groups.access import Caller
from groups.groups.actions import GroupChanges, delete_group, update_group
from groups.login.sign_on import accounts
from groups.login.sign_on.accounts import sign_on
from groups.login.sign_on.provider import Identity
from groups.login.sign_on.settings import OidcSettings
from groups.models import Group, User
from groups.permissions import BuiltIn
from tests.support.cast import make_group, make_user
from tests.support.racing import together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.exhaustive]
ISSUER = "https://login.example.org"


def delete(group: Group) -> None:
    delete_group(group.pk, caller=Caller.system())


def provision(group: Group) -> None:
    changes: GroupChanges = {"scim_id": str(group.pk)}
    update_group(group.pk, changes, by_provider=True, caller=Caller.system())


@pytest.fixture
def log_in(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Logs in with these values of the claim. Returns the names of anna's groups then.

    ``meanwhile`` happens on another connection, once the groups have been looked up.
    """
    settings.SIGN_ON = OidcSettings(issuer=ISSUER, client_id="flagadmin", groups_claim="groups")
    make_user("root", root_role=BuiltIn.ADMIN)
    anna = make_user("anna")
    SocialAccount.objects.create(user=anna, provider=ISSUER, uid="anna")
    find_group_ids = accounts.find_group_ids

    def with_groups(*values: str, meanwhile: Callable[[], None] = lambda: None) -> list[str]:
        def find_then_wait(claimed: frozenset[str]) -> set[int]:
            found_ids = find_group_ids(claimed)
            together(meanwhile)
            return found_ids

        monkeypatch.setattr(accounts, "find_group_ids", find_then_wait)
        user = sign_on(Identity.of({"sub": "anna", "groups": list(values)}, settings.SIGN_ON))
        assert user == anna
        return sorted(User.objects.get(pk=user.pk).groups.values_list("name", flat=True))

    return with_groups


@pytest.mark.parametrize("change", [delete, provision])
def test_a_group_that_cannot_be_joined_any_more_keeps_nobody_out(log_in, change):
    ops = make_group("ops")
    make_group("qa")
    assert log_in("ops", "qa", meanwhile=lambda: change(ops)) == ["qa"]


def test_a_group_that_the_claim_takes_back_may_be_gone(log_in):
    ops = make_group("ops")
    assert log_in("ops") == ["ops"]
    assert log_in(meanwhile=lambda: delete(ops)) == []
