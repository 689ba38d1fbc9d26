"""From the start page: what changed yesterday, and an import without two of its flags, in few clicks."""

import json
import re
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone
from playwright.sync_api import Page, expect

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from flagadmin.demo.clock import at
from flagadmin.demo.load import load_demo
from groups.access import Caller
from projects.models import Flag
from tests.browser.conftest import fits
from tests.browser.journeys import Clicks
from tests.support.flags import make_flag

PAGES = ("/", "/activity/", "/imports/", "/import/")


def changed(feature: str, *, ago: timedelta) -> None:
    with transaction.atomic(), at(timezone.now() - ago):
        event = Event(
            type=EventType.FEATURE_ENVIRONMENT_ENABLED,
            project="default",
            environment="production",
            feature=feature,
        )
        record(event, actor=Caller.system())


def test_what_changed_yesterday(visit, transactional_db):
    changed("long-ago", ago=timedelta(days=3))
    changed("of-yesterday", ago=timedelta(days=1))
    changed("of-now", ago=timedelta())
    page = visit("admin", "/")
    clicks = Clicks(page)

    clicks.on(page.get_by_role("navigation", name="Main").get_by_role("link", name="Activity"))
    clicks.on(page.get_by_role("link", name="Yesterday", exact=True))

    expect(page.get_by_role("heading", name="Yesterday")).to_be_visible()
    changes = page.get_by_role("article")
    expect(changes).to_have_count(1)
    expect(changes).to_contain_text("turned of-yesterday on in production")
    expect(changes.locator("ins")).to_have_text("On")
    assert clicks.count <= 2


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_stale_flags_of_all_projects_are_archived(visit, scenery, script):
    for number, project in enumerate(("checkout", "legacy-portal", "default")):
        make_flag(f"zz-stale-{number}", project, stale=True)
    page = visit("admin", "/", script=script)
    clicks = Clicks(page)

    clicks.on(page.get_by_role("link", name="3 stale flags"))
    expect(page.get_by_role("rowheader", name="zz-stale-0")).to_be_visible()
    if script:
        clicks.on(page.get_by_label("Select all on this page"))
    else:
        for box in page.get_by_role("row").get_by_role("checkbox").all():
            clicks.on(box)
        clicks.count = 2  # ticking row by row is the price of no JavaScript
    clicks.on(page.get_by_role("button", name="Archive selected"))
    clicks.on(page.get_by_role("button", name=re.compile("^Archive .* flags$")))

    expect(page.get_by_role("status").first).to_contain_text("Archived")
    assert Flag.objects.archived().filter(name__startswith="zz-stale").count() == 3
    assert clicks.count == 4


def test_an_import_without_two_flags_is_made_and_undone_in_seven_clicks(visit, transactional_db, tmp_path):
    names = ["one", "two", "three"]
    states = [{"name": n, "featureName": n, "environment": "production", "enabled": True} for n in names]
    document = {
        "features": [{"name": name} for name in names],
        "featureStrategies": [],
        "featureEnvironments": states,
        "tagTypes": [],
    }
    (tmp_path / "export.json").write_text(json.dumps(document))
    page = visit("admin", "/")
    clicks = Clicks(page)

    clicks.on(page.get_by_role("navigation", name="Main").get_by_role("link", name="Import"))
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "export.json")
    clicks.count += 1  # the button that opens the browser's dialog
    typed(page, "Into project", "Default")
    typed(page, "Into environment", "production")
    clicks.enter(page.get_by_role("button", name="Check changes"))
    clicks.on(page.get_by_label("Exclude one"))
    clicks.on(page.get_by_label("Exclude three"))
    button = page.get_by_role("button", name="Import 1 flag, exclude 2")
    expect(button).to_be_in_viewport()
    clicks.on(button)

    expect(page.get_by_text("1 flag written.")).to_be_visible()
    expect(page.get_by_text("Excluded: one, three")).to_be_visible()
    assert set(Flag.objects.values_list("name", flat=True)) == {"two"}
    assert clicks.count == 6
    clicks.on(page.get_by_role("link", name="Undo import…"))
    expect(page.get_by_text("Deletes two.")).to_be_visible()
    clicks.on(page.get_by_role("button", name="Undo import into default / production"))

    expect(page.get_by_text("Deleted two")).to_be_visible()
    assert not Flag.objects.exists()


def typed(page: Page, label: str, option: str) -> None:
    select = page.get_by_label(label)
    select.focus()
    page.keyboard.type(option)
    expect(select).to_have_value(option.lower())


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_demos_overview_fits_phones_and_is_accessible(visit, transactional_db, theme, check_accessible):
    load_demo()
    page = visit("demo", "/", theme=theme, width=360)
    for address in PAGES:
        page.goto(address)
        check_accessible(page)
        fits(page)
    page.goto("/")
    page.get_by_role("link", name="Import into checkout").click()
    expect(page.get_by_role("button", name="Send for review")).to_be_in_viewport()
    check_accessible(page)
    fits(page)
