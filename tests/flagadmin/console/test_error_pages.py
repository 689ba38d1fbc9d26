"""Error pages explain the problem, link onward, and work without the database."""

from unittest import mock

import pytest
from django.db import OperationalError

from flagadmin.core.errors import NoAccess, ValidationError
from tests.support.flags import make_flag


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (NoAccess('You need "delete project" in shop.'), 403, "You need &quot;delete project&quot; in shop."),
        (ValidationError.at("kind", "There is no x."), 400, "kind: There is no x."),
        (RuntimeError("secret detail"), 500, "Something went wrong."),
    ],
)
def test_a_refusal_is_a_page(browse, error, status, words):
    viewer = browse("viewer")
    viewer.raise_request_exception = False
    with mock.patch("flagadmin.console.start.StartPage.get_context_data", side_effect=error):
        response = viewer.get("/")

    assert response.status_code == status
    assert words in response.text
    assert "secret detail" not in response.text


@pytest.mark.parametrize("address", ["/account/log-out-everywhere/", "/theme/"])
def test_an_address_of_forms_alone_is_a_page_that_leads_on(browse, address):
    response = browse("viewer").get(address)

    assert response.status_code == 405
    assert response["Allow"].startswith("POST")
    assert "This URL only accepts form submissions." in response.text
    assert 'href="/"' in response.text


def test_a_missing_permission_says_who_gives_it(browse, shop):
    response = browse("viewer").get("/projects/shop/delete/")

    assert response.status_code == 403
    assert "An admin can grant you a role with this permission" in response.text
    assert '<a href="/flags/">Go to Flags</a>' in response.text


def test_a_filter_that_is_refused_can_be_removed(browse, shop):
    response = browse("viewer").get("/projects/shop/?tag=x:y&q=cart")

    assert response.status_code == 400
    assert "tag: x:y not found. There are none." in response.text
    assert '<a href="/projects/shop/">Remove filters</a>' in response.text


def test_without_the_database_the_page_still_stands(browse):
    viewer = browse("viewer")
    with mock.patch("django.db.backends.utils.CursorWrapper.execute", side_effect=OperationalError("gone")):
        response = viewer.get("/")

    assert response.status_code == 503
    assert "The database is not available." in response.text
    assert "<nav" not in response.text


def test_part_of_a_page_asked_for_by_script_leads_to_the_login_page(client, db):
    response = client.get(
        "/activity/?page=2",
        headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/activity/?kind=flags#x"},
    )

    assert response["HX-Redirect"] == "/login/?next=/activity/%3Fkind%3Dflags"


def test_pages_are_compressed_and_not_kept(browse):
    response = browse("viewer").get("/", headers={"Accept-Encoding": "gzip"})

    assert response["Content-Encoding"] == "gzip"
    assert "no-store" in response["Cache-Control"]


def test_an_address_without_an_environment_says_which_there_are_and_leads_back(browse, shop):
    make_flag("cart")
    response = browse("admin").get("/projects/shop/features/cart/switch")

    assert response.status_code == 400
    assert "The address does not say which environment. Available: development, production." in response.text
    assert '<a href="/projects/shop/features/cart/">Go to cart</a>' in response.text


def test_a_page_that_one_may_not_open_leads_to_its_section(browse):
    response = browse("viewer").get("/admin/", follow=True)

    assert response.status_code == 403
    assert '<a href="/settings/">Go to Settings</a>' in response.text
    assert 'href="/admin/"' not in response.text
