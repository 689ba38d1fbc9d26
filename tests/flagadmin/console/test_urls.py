"""Every route of the console has a unique name, and templates and views use it."""

from collections import Counter
from importlib import import_module

import pytest
from django.urls import NoReverseMatch, reverse

from projects.console import application_url

MODULES = [
    "flagadmin.console.urls",
    "groups.console_urls",
    "importer.console_urls",
    "playground.console_urls",
    "projects.console_urls",
]


def test_every_route_has_a_name_of_its_own():
    names = Counter(route.name for module in MODULES for route in import_module(module).urlpatterns)

    assert None not in names
    assert {name: count for name, count in names.items() if count > 1} == {}


@pytest.mark.parametrize("name", ["a/b", "../x", "two\nlines", "50 %", "ünïcode?"])
def test_any_name_of_an_application_has_a_url(name):
    assert application_url(name).count("/") == 3


def test_a_flag_has_no_slash():
    with pytest.raises(NoReverseMatch):
        reverse("flag", args=["default", "a/b"])
