"""Every page of the admin site is accessible in both themes and fits a narrow screen."""

from typing import Any

import pytest
from django.contrib import admin
from django.urls import reverse

from tests.browser.conftest import fits, make_narrow

admin.autodiscover()

pytestmark = pytest.mark.usefixtures("scenery")


def address(model, page, *args):
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def lists():
    return [address(model, "changelist") for model in admin.site._registry]


def rows():
    """The page of one row of every model that has any."""
    found = {model: model._base_manager.first() for model in admin.site._registry}
    return [address(model, "change", row.pk) for model, row in found.items() if row is not None]


def deletions():
    pages: dict[Any, Any] = dict(admin.site._registry)
    found = {model: model._base_manager.first() for model, page in pages.items() if page.remove}
    return [address(model, "delete", row.pk) for model, row in found.items() if row is not None]


def others():
    """An app's page, the form of the most fields, and a history."""
    return ["/admin/projects/", "/admin/projects/flag/add/", "/admin/projects/project/checkout/history/"]


@pytest.mark.parametrize("addresses", [lists, rows, deletions, others])
def test_they_are_accessible_in_both_themes_and_fit_a_narrow_screen(visit, check_accessible, addresses):
    page = visit("admin", "/admin/")
    for there in addresses():
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto(there)
        check_accessible(page)
        page.emulate_media(color_scheme="dark")
        make_narrow(page)
        check_accessible(page)
        fits(page)
