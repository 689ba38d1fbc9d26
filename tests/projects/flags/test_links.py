"""Links of flags, and favorite flags."""

import uuid

from projects.models import FavoriteFlag, FavoriteProject, FlagLink
from tests.support.flags import make_flag
from tests.support.for_each import for_each
from tests.support.records import events, refused

PATH = "/api/admin/projects/shop/features/cart/link"


def add(client, url="example.com", **body):
    return client.post(PATH, {"url": url, **body}, format="json")


def test_adding_changing_and_removing(api, cart):
    assert add(api["member"], "www.example.com/", title="T").status_code == 204
    link = FlagLink.objects.get()
    assert (link.url, link.title) == ("https://example.com", "T")
    body = {"url": "http://b.c", "title": None}
    assert api["member"].put(f"{PATH}/{link.pk}", body, format="json").status_code == 204
    link.refresh_from_db()
    assert (link.url, link.title) == ("http://b.c", None)
    assert api["member"].delete(f"{PATH}/{link.pk}").status_code == 204
    assert not FlagLink.objects.exists()
    kinds = ("feature-link-added", "feature-link-updated", "feature-link-removed")
    assert [event.type for event in events(*kinds)] == list(kinds)
    record = refused(add(api["member"], "javascript:alert(1)"), 400, "ValidationError")
    assert record["details"][0]["path"] == "url"


def test_at_most_ten(api, cart):
    for number in range(10):
        assert add(api["member"], f"a.b/{number}").status_code == 204
    refused(add(api["member"]), 400, "ValidationError")


def test_a_link_of_another_flag(api, cart):
    link = FlagLink.objects.create(flag=make_flag("other"), url="https://a.b")
    for link_id in (link.pk, uuid.uuid4(), "nope"):
        refused(api["member"].delete(f"{PATH}/{link_id}"), 404, "NotFoundError")
        refused(api["member"].put(f"{PATH}/{link_id}", {"url": "a.b"}, format="json"), 404, "NotFoundError")


FAVORITE = "/api/admin/projects/shop/features/cart/favorites"
PROJECT_FAVORITE = "/api/admin/projects/shop/favorites"


@for_each(("path", "model"), [(FAVORITE, FavoriteFlag), (PROJECT_FAVORITE, FavoriteProject)])
def test_favorites_are_ones_own(api, people, cart, path, model):
    for _ in range(2):
        assert api["reader"].post(path).status_code == 200
    assert [row.user for row in model.objects.all()] == [people["reader"]]
    assert api["member"].delete(path).status_code == 200
    assert model.objects.count() == 1
    assert api["reader"].delete(path).status_code == 200
    assert not model.objects.exists()
    assert len(events("feature-favorited", "project-favorited")) == 1
    assert len(events("feature-unfavorited", "project-unfavorited")) == 1


@for_each("path", [FAVORITE, PROJECT_FAVORITE])
def test_favorites_that_are_refused(api, cart, path):
    refused(api["outsider"].post(path), 404, "NotFoundError")
    refused(api["admin_token"].post(path), 403, "InvalidOperationError")
