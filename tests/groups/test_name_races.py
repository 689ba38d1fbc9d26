"""When the same name is created concurrently, one request succeeds and the others report a conflict."""

from functools import partial

import pytest

from flagadmin.core.errors import NameExists, UserExists
from groups.access import Caller
from groups.groups.actions import NewGroup, create_group
from groups.models import ApiToken, Group, Role, User
from groups.people.actions import NewAccount, create_account
from groups.people.personal_tokens import create_personal_token
from groups.roles.actions import create_role
from tests.support.cast import make_user
from tests.support.racing import together

pytestmark = pytest.mark.exhaustive

SYSTEM = Caller.system()
AT_ONCE = 6


def taken(make):
    """How many of several at once are refused for the name."""
    return sum(isinstance(each, NameExists | UserExists) for each in together(*[make] * AT_ONCE))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("make", "model"),
    [
        (partial(create_account, NewAccount(username="anna"), caller=SYSTEM), User),
        (partial(create_group, NewGroup(name="Team"), caller=SYSTEM), Group),
        (
            partial(create_role, "Mine", description="", type="custom", permissions=[], caller=SYSTEM),
            Role,
        ),
    ],
)
def test_of_many_creations_with_one_name_one_succeeds(make, model):
    before = model.objects.count()
    assert taken(make) == AT_ONCE - 1
    assert model.objects.count() == before + 1


@pytest.mark.django_db(transaction=True)
def test_of_many_tokens_with_one_name_one_is_created():
    user = make_user("anna")
    make = partial(create_personal_token, user, name="laptop", expires_at=None, caller=Caller(user=user))
    assert taken(make) == AT_ONCE - 1
    assert ApiToken.objects.count() == 1
