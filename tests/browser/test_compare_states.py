"""Browser tests of who changes: two environments compared, and an import's preview."""

import json

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.usefixtures("scenery")


def test_the_examples_of_who_changes_are_accessible(visit, check_accessible):
    page = visit("viewer", "/playground/who-changes/?from=production&to=development&users=200")
    page.get_by_text("Examples").first.click()
    expect(page.get_by_role("link", name="Explain").first).to_be_visible()
    check_accessible(page)


def test_the_preview_of_an_import_says_who_changes(visit, check_accessible):
    page = visit("admin", "/import/")
    parameters = {"rollout": "25", "stickiness": "userId", "groupId": "fresh"}
    given = {
        "features": [{"name": "fresh"}],
        "featureStrategies": [{"name": "flexibleRollout", "featureName": "fresh", "parameters": parameters}],
        "featureEnvironments": [{"name": "fresh", "featureName": "fresh", "enabled": True}],
        "tagTypes": [],
    }
    page.get_by_text("Paste").first.click()
    page.locator("[name=text]").fill(json.dumps(given))
    page.get_by_label("Into project").select_option("default")
    page.get_by_label("Into environment").select_option("production")
    page.get_by_role("button", name="Check changes").click()
    section = page.get_by_role("region", name="Who changes")
    expect(section).to_contain_text("get a different result from 1 flag")
    expect(section).to_contain_text("of 10,000 users off → on")
    check_accessible(page)
    section.get_by_role("link", name="fresh").click()
    expect(page.get_by_text("The flag does not exist").first).to_be_visible()
