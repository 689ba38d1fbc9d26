"""Addresses with slashes too many: SDKs and scripts make them of a base URL that ends with a slash."""

import pytest

from flagadmin.core.http.middleware import make_canonical_path
from tests.support.cast import client, make_token


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("backend", "/api//client/features"),
        ("backend", "/api//client//features/"),
        ("frontend", "/api//frontend"),
        ("frontend", "/api/proxy/"),
    ],
)
def test_sdks_are_answered(shop, kind, path):
    token = make_token(kind, environment="production")
    assert client(token).get(path).status_code == 200


def test_reports_and_admin_calls_are_answered(api, shop):
    backend = client(make_token("backend", environment="production"))
    report = {"appName": "web", "interval": 10, "strategies": [], "started": "2026-11-26T00:00:00Z"}
    assert backend.post("/api//client/register", report).status_code == 202
    assert backend.post("/edge//validate/", {"tokens": []}).status_code == 200
    assert api["viewer"].get("/api//admin/projects//shop/applications/").status_code == 200
    assert api["outsider"].get("/api//admin/projects//shop/applications/").status_code == 404
    refused = api["viewer"].post("/api/admin//tag-types", {"name": "team"})
    assert (refused.status_code, refused.json()["name"]) == (403, "NoAccessError")


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("//api/client/features", "/api/client/features"),
        ("///api///client/features//", "/api/client/features"),
        ("//scim/v2//Users/", "/scim/v2/Users"),
        ("/api/admin/features/cart/tags/simple/a//b", "/api/admin/features/cart/tags/simple/a//b"),
        ("//api/admin/features/cart/tags/simple/a//b/", "/api/admin/features/cart/tags/simple/a//b/"),
        ("/api//admin/features/cart/tags/simple/a//b", "/api/admin/features/cart/tags/simple/a//b"),
        ("/api//admin/features//cart", "/api/admin/features/cart"),
        ("/api/client/streaming/", "/api/client/streaming"),
        ("//projects/", "//projects/"),
        ("/projects/shop/", "/projects/shop/"),
        ("/api/docs/", "/api/docs/"),
    ],
)
def test_slashes_of_names_and_pages_stay(path, canonical):
    assert make_canonical_path(path) == canonical
