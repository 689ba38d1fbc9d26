"""Journeys of the console without another test that counts their clicks. Fields that are filled count beside them."""

from projects.models import Project
from tests.support.walks import read_text


def test_two_environments_are_compared_in_one_click(walk, scenery):
    page = walk("admin", "/projects/checkout/")
    page.press("Environments", within="Project")
    assert page.control("Differs")["aria-current"] == "true"
    assert {"production", "development"} <= {read_text(each) for each in page.page.select("thead th")}
    assert page.presses == 1


def test_slack_is_told_in_five_clicks_and_a_field(walk, scenery):
    page = walk("admin", "/")
    page.press("Settings", within="Main")
    page.press("Integrations")
    page.press("Add Slack incoming webhook")
    page.fill("URL", "https://hooks.example.com/services/1")
    page.press("Create integration")
    page.press("Send test")
    assert page.page.select_one("#test-result .pill")
    assert page.presses == 5


def test_a_move_is_checked_in_three_clicks_and_two_fields(walk, scenery):
    page = walk("admin", "/")
    page.press("Settings", within="Main")
    page.press("Move from Unleash")
    page.fill("Address of Unleash", "http://127.0.0.1:9")
    page.fill("Admin token", "*:*.secret")
    page.press("Check what would move")
    assert "127.0.0.1" in page.text
    assert page.presses == 3


def test_a_project_is_deleted_in_three_clicks_and_a_field(walk, scenery):
    Project.objects.create(id="spare", name="Spare")
    page = walk("admin", "/projects/spare/")
    page.press("Settings", within="Project")
    page.press("Delete project Spare")
    page.fill("Type spare to confirm", "spare")
    page.press("Delete project spare")
    assert "Deleted project spare" in page.status_message
    assert page.presses == 3
