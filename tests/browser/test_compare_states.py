"""Browser tests of who changes: two environments compared, and an import's preview."""

import json
import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.usefixtures("scenery")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_from_two_environments_to_a_user_and_why(visit, script, check_accessible):
    page = visit("viewer", "/playground/who-changes/", script=script)
    page.get_by_text("Points in time, projects, number of users").click()
    page.get_by_label("Users", exact=True).fill("200")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("of 200 generated users see")).to_be_visible()

    page.get_by_text("Examples").first.click()
    expect(page.get_by_role("link", name="Explain").first).to_be_visible()
    if script:
        check_accessible(page)
    page.get_by_role("link", name="All who change").first.click()
    page.get_by_role("link", name="Explain").first.click()
    expect(page).to_have_url(re.compile("/playground/flag/"))
    expect(page.get_by_text("production").first).to_be_visible()


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
