"""Two concurrent JSON Patches that change different members are both applied."""

import pytest

from projects.models import FlagEnvironment
from tests.support.cast import client, make_project, make_token, make_user
from tests.support.flags import add_strategy, make_flag
from tests.support.racing import BEFORE_COMMIT, BEFORE_LOCK, race

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.exhaustive]

FLAG = "/api/admin/projects/shop/features/cart"
DEVELOPMENT = f"{FLAG}/environments/development"


@pytest.fixture
def cart():
    make_project("shop")
    return make_flag("cart")


@pytest.fixture
def patch():
    """``patch(path, op=…)``: a request to make, on whatever connection runs it."""
    secret = make_token("personal", user=make_user("admin", root_role=1))

    def prepared(url, /, **operation):
        return lambda: client(secret).patch(url, [operation], format="json").status_code

    return prepared


@pytest.mark.parametrize("stop", [BEFORE_LOCK, BEFORE_COMMIT])
def test_of_a_flag(cart, patch, stop):
    stale = patch(FLAG, op="replace", path="/stale", value=True)
    told = patch(FLAG, op="replace", path="/description", value="new")
    assert race(stale, told, stop=stop) == (200, 200)
    cart.refresh_from_db()
    assert (cart.stale, cart.description) == (True, "new")


@pytest.mark.parametrize("stop", [BEFORE_LOCK, BEFORE_COMMIT])
def test_of_a_strategy(cart, patch, stop):
    strategy = add_strategy(cart, title="old")
    path = f"{DEVELOPMENT}/strategies/{strategy.pk}"
    titled = patch(path, op="replace", path="/title", value="new")
    limited = patch(path, op="add", path="/parameters/users", value="7")
    assert race(titled, limited, stop=stop) == (200, 200)
    strategy.refresh_from_db()
    assert (strategy.title, strategy.parameters) == ("new", {"users": "7"})


@pytest.mark.parametrize("stop", [BEFORE_LOCK, BEFORE_COMMIT])
def test_of_variants(cart, patch, stop):
    def add(name):
        variant = {"name": name, "weight": 1000, "weightType": "variable", "stickiness": "default"}
        return patch(f"{DEVELOPMENT}/variants", op="add", path="/-", value=variant)

    assert race(add("blue"), add("red"), stop=stop) == (200, 200)
    variants = FlagEnvironment.objects.get(flag=cart, environment="development").variants
    assert [variant["name"] for variant in variants] == ["blue", "red"]
