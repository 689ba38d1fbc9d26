"""Permission errors come before errors in the body; a flag that the caller may not see is not found."""

import pytest

from projects.models import FlagLink
from tests.support.flags import add_strategy, make_flag
from tests.support.records import refused

SHOP = "/api/admin/projects/shop"
CART = f"{SHOP}/features/cart"
DEVELOPMENT = f"{CART}/environments/development"


@pytest.fixture
def places(shop):
    flag = make_flag("cart")
    strategy, link = add_strategy(flag), FlagLink.objects.create(flag=flag, url="https://a.b")
    return {"strategy": strategy.pk, "link": link.pk}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("post", f"{SHOP}/features"),
        ("put", CART),
        ("patch", CART),
        ("post", f"{CART}/changeProject"),
        ("post", f"{CART}/clone"),
        ("post", f"{SHOP}/archive"),
        ("post", f"{SHOP}/archive/validate"),
        ("post", f"{SHOP}/bulk_features/environments/development/on"),
        ("post", f"{SHOP}/bulk_features/environments/development/off"),
        ("post", f"{SHOP}/revive"),
        ("post", f"{SHOP}/delete"),
        ("post", f"{SHOP}/stale"),
        ("put", f"{SHOP}/tags"),
        ("post", f"{DEVELOPMENT}/strategies"),
        ("post", f"{DEVELOPMENT}/strategies/set-sort-order"),
        ("put", f"{DEVELOPMENT}/strategies/{{strategy}}"),
        ("patch", f"{DEVELOPMENT}/strategies/{{strategy}}"),
        ("put", f"{DEVELOPMENT}/variants"),
        ("patch", f"{DEVELOPMENT}/variants"),
        ("post", f"{CART}/dependencies"),
        ("post", f"{CART}/link"),
        ("put", f"{CART}/link/{{link}}"),
        ("post", "/api/admin/features/cart/tags"),
        ("put", "/api/admin/features/cart/tags"),
    ],
)
def test_a_body_that_is_wrong_everywhere(api, places, method, path):
    def send(role):
        return getattr(api[role], method)(path.format(**places), "wrong", format="json")

    refused(send("nobody"), 401, "AuthenticationRequired")
    refused(send("outsider"), 404, "NotFoundError")
    assert refused(send("viewer"), 403, "NoAccessError")["permissions"]
    refused(send("owner"), 400, "ValidationError")
