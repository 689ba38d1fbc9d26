"""Lists, the search, sections and descriptions."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from flagadmin.demo.clock import at
from groups.access import Caller
from tests.support.walks import read_text


def test_what_changed_yesterday_in_two_clicks(walk):
    changed("long-ago", ago=timedelta(days=3))
    changed("of-yesterday", ago=timedelta(days=1))
    changed("of-now", ago=timedelta())
    page = walk("admin", "/")
    page.press("What happened", within="Main")
    page.press("Yesterday")
    [change] = page.page.select("article")
    assert read_text(page.page.select_one("main h2")).startswith("Yesterday")
    assert "turned of-yesterday on in production" in read_text(change)
    assert [read_text(each) for each in change.select("ins")] == ["On"]
    assert page.presses == 2


def test_an_application_is_looked_into_and_deleted(walk, scenery):
    page = walk("admin", "/projects/checkout/applications/?q=ios")
    page.press("ios-app")
    assert "production" in read_text(page.part("apple-pay"))
    page.press("Delete application ios-app")
    assert "Deleted application ios-app." in page.status_message
    assert page.rows() == ["web-shop"]


@pytest.mark.parametrize("address", ["/access/roles/", "/projects/checkout/", "/activity/", "/playground/"])
def test_a_search_field_has_a_button(walk, scenery, address):
    assert "Filter" in walk("admin", address).names()


def test_a_list_is_filtered_by_its_button(walk, scenery):
    page = walk("admin", "/access/roles/")
    page.fill(page.label_of(page.page.select_one("main input[type=search]")), "view")
    page.press("Filter")
    assert page.rows() == ["Viewer"]


def test_the_search_is_a_page(walk, scenery):
    page = walk("admin", "/activity/")
    page.press("Search or jump to")
    page.fill("Search or jump to", "redesign check")
    page.press("Search")
    page.press("checkout-redesign")
    assert page.heading == "checkout-redesign"


def test_pages_of_a_section_are_tabs(walk, scenery):
    tabs = walk("admin", "/segments/").part("Settings")
    assert [read_text(each) for each in tabs.select("a")] == [
        "Environments",
        "Segments",
        "Context fields",
        "Strategy types",
        "Tag types",
        "Release templates",
    ]
    assert read_text(tabs.select_one("[aria-current]")) == "Segments"


def changed(feature, *, ago):
    with transaction.atomic(), at(timezone.now() - ago):
        event = Event(
            type=EventType.FEATURE_ENVIRONMENT_ENABLED,
            project="default",
            environment="production",
            feature=feature,
        )
        record(event, actor=Caller.system())


def test_the_operation_of_an_api_is_described_without_the_form(walk, scenery):
    page = walk("admin", "/api/docs/createTagType/")
    assert page.heading == "Create a tag type"
    assert page.page.select_one("[aria-label=curl]")
    heading = next(each for each in page.page.select("h2, h3") if read_text(each) == "Try it")
    assert heading.find_parent(hidden=True) or heading.has_attr("hidden")


def test_a_viewer_is_offered_no_editing(walk, scenery):
    page = walk("viewer", "/settings/")
    assert [name for name in page.names() if "edit" in name.lower() or name == "Data fixes"] == []
    page.open("/admin/")
    assert "Admin" in page.heading
