"""Permission errors come before errors in the body; a flag that the caller may not see is not found."""

import pytest

from projects.models import FlagLink
from tests.support.flags import add_strategy, make_flag
from tests.support.for_each import for_each
from tests.support.records import refused

SHOP = "/api/admin/projects/shop"
CART = f"{SHOP}/features/cart"
DEVELOPMENT = f"{CART}/environments/development"


@pytest.fixture
def places(shop):
    flag = make_flag("cart")
    make_flag("gone", archived=True)
    strategy, link = add_strategy(flag), FlagLink.objects.create(flag=flag, url="https://a.b")
    return {"strategy": strategy.pk, "link": link.pk}


def refuse(send, permission):
    refused(send("nobody"), 401, "AuthenticationRequired")
    refused(send("outsider"), 404, "NotFoundError")
    for role in ("editor", "viewer", "reader"):
        assert refused(send(role), 403, "NoAccessError")["permissions"] == [permission]


@for_each(
    ("method", "path", "permission"),
    [
        ("post", f"{SHOP}/features", "CREATE_FEATURE"),
        ("put", CART, "UPDATE_FEATURE"),
        ("patch", CART, "UPDATE_FEATURE"),
        ("post", f"{CART}/changeProject", "MOVE_FEATURE_TOGGLE"),
        ("post", f"{CART}/clone", "CREATE_FEATURE"),
        ("post", f"{SHOP}/archive", "DELETE_FEATURE"),
        ("post", f"{SHOP}/archive/validate", "DELETE_FEATURE"),
        ("post", f"{SHOP}/bulk_features/environments/development/on", "UPDATE_FEATURE_ENVIRONMENT"),
        ("post", f"{SHOP}/bulk_features/environments/development/off", "UPDATE_FEATURE_ENVIRONMENT"),
        ("post", f"{SHOP}/revive", "UPDATE_FEATURE"),
        ("post", f"{SHOP}/delete", "DELETE_FEATURE"),
        ("post", f"{SHOP}/stale", "UPDATE_FEATURE"),
        ("put", f"{SHOP}/tags", "UPDATE_FEATURE"),
        ("post", f"{DEVELOPMENT}/strategies", "CREATE_FEATURE_STRATEGY"),
        ("post", f"{DEVELOPMENT}/strategies/set-sort-order", "UPDATE_FEATURE_STRATEGY"),
        ("put", f"{DEVELOPMENT}/strategies/{{strategy}}", "UPDATE_FEATURE_STRATEGY"),
        ("patch", f"{DEVELOPMENT}/strategies/{{strategy}}", "UPDATE_FEATURE_STRATEGY"),
        ("put", f"{DEVELOPMENT}/variants", "UPDATE_FEATURE_ENVIRONMENT_VARIANTS"),
        ("patch", f"{DEVELOPMENT}/variants", "UPDATE_FEATURE_ENVIRONMENT_VARIANTS"),
        ("post", f"{CART}/dependencies", "UPDATE_FEATURE_DEPENDENCY"),
        ("post", f"{CART}/lifecycle/complete", "UPDATE_FEATURE"),
        ("post", f"{CART}/link", "UPDATE_FEATURE"),
        ("put", f"{CART}/link/{{link}}", "UPDATE_FEATURE"),
        ("post", "/api/admin/features/cart/tags", "UPDATE_FEATURE"),
        ("put", "/api/admin/features/cart/tags", "UPDATE_FEATURE"),
    ],
)
def test_a_body_that_is_wrong_everywhere(api, places, method, path, permission):
    def send(role):
        return getattr(api[role], method)(path.format(**places), "wrong", format="json")

    refuse(send, permission)
    refused(send("owner"), 400, "ValidationError")


@for_each(
    ("method", "path", "permission"),
    [
        ("delete", CART, "DELETE_FEATURE"),
        ("post", f"{DEVELOPMENT}/on", "UPDATE_FEATURE_ENVIRONMENT"),
        ("post", f"{DEVELOPMENT}/off", "UPDATE_FEATURE_ENVIRONMENT"),
        ("delete", f"{DEVELOPMENT}/strategies/{{strategy}}", "DELETE_FEATURE_STRATEGY"),
        ("delete", f"{CART}/dependencies", "UPDATE_FEATURE_DEPENDENCY"),
        ("delete", f"{CART}/dependencies/parent", "UPDATE_FEATURE_DEPENDENCY"),
        ("post", f"{CART}/lifecycle/uncomplete", "UPDATE_FEATURE"),
        ("post", "/api/admin/archive/revive/gone", "UPDATE_FEATURE"),
        ("delete", "/api/admin/archive/gone", "DELETE_FEATURE"),
    ],
)
def test_without_a_body(api, places, method, path, permission):
    refuse(lambda role: getattr(api[role], method)(path.format(**places)), permission)
