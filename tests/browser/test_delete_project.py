"""Browser test of deleting a project: archive its flags, read what will be lost, type the project id."""

import re

import pytest
from playwright.sync_api import expect

from groups.models import Grant
from groups.permissions import BuiltIn
from projects.models import Flag, Project
from tests.browser.conftest import person

pytestmark = pytest.mark.usefixtures("scenery")
URL = "/projects/legacy-portal/delete/"
SCRIPT = pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])


@SCRIPT
def test_the_blockers_are_archived_and_the_project_is_deleted_by_typing_its_id(visit, script):
    page = visit("admin", "/projects/legacy-portal/", script=script)
    page.goto("/projects/legacy-portal/delete/")
    red = page.get_by_role("button", name="Delete project legacy-portal")
    expect(page.locator("main")).to_contain_text(
        "2 flags are still active. Archive them first; the project can be deleted after that."
    )
    row = page.get_by_role("row", name="portal-read-only")
    expect(row).to_contain_text(re.compile(r"portal-web, \d+\sminutes ago"))
    expect(red).to_be_disabled()
    expect(page.locator("#blocked")).to_have_text("2 flags are still active.")

    page.get_by_label("Select portal-banner").check()
    page.get_by_role("button", name="Archive selected").click()
    page.get_by_role("button", name="Archive flag portal-banner").click()
    expect(page.get_by_role("status")).to_contain_text("Archived flag portal-banner.")
    page.get_by_role("button", name="Archive flag portal-read-only…").click()
    expect(page.locator("main")).to_contain_text("portal-read-only was evaluated by portal-web")
    page.get_by_role("button", name="Archive flag portal-read-only").click()

    expect(page.locator("main")).to_contain_text(
        "This cannot be undone. It removes for good: project legacy-portal and its 4 archived flags."
    )
    page.get_by_label("Type legacy-portal to confirm").fill("legacy")
    red.click()
    expect(page.locator("#confirm_error")).to_have_text("Type legacy-portal to confirm; you typed legacy.")
    if script:
        expect(page.get_by_label("Type legacy-portal to confirm")).to_be_focused()
    assert Project.objects.filter(pk="legacy-portal").exists()

    page.get_by_label("Type legacy-portal to confirm").fill("legacy-portal")
    red.click()
    page.wait_for_url("**/projects/")
    expect(page.get_by_role("status")).to_contain_text(
        "Deleted project legacy-portal and its 4 archived flags."
    )
    expect(page.get_by_role("link", name="Legacy portal")).to_have_count(0)
    assert not Project.objects.filter(pk="legacy-portal").exists()


def test_the_backup_is_downloaded(visit):
    page = visit("admin", URL)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download a backup (JSON)").click()

    assert download.value.suggested_filename.startswith("legacy-portal-backup-")


@SCRIPT
def test_what_somebody_else_changed_meanwhile_is_told(visit, script):
    Flag.objects.filter(project="legacy-portal").update(archived_at="2026-01-01T00:00:00Z")
    page = visit("admin", URL, script=script)
    Grant.objects.create(role_id=BuiltIn.MEMBER, project_id="legacy-portal", user=person("late"))
    page.get_by_label("Type legacy-portal to confirm").fill("legacy-portal")
    page.get_by_role("button", name="Delete project legacy-portal").click()

    expect(page.get_by_role("alert")).to_contain_text("Nothing was deleted. This is how it is now.")
    expect(page.locator("main")).to_contain_text("the access of 1 person")
    assert Project.objects.filter(pk="legacy-portal").exists()


def test_a_viewer_is_not_offered_it_and_is_refused_in_words(visit):
    page = visit("viewer", "/projects/legacy-portal/")
    expect(page.get_by_role("link", name="Delete project")).to_have_count(0)
    page.goto(URL)

    expect(page.get_by_role("heading", level=1)).to_have_text(
        'You need the "Archive and delete the project" permission in Legacy portal.'
    )
    expect(page.get_by_role("button", name="Delete project legacy-portal")).to_have_count(0)


def test_the_project_page_leads_to_the_default_projects_reason(visit):
    page = visit("admin", "/projects/default/delete/")

    expect(page.locator("main")).to_contain_text("The default project cannot be deleted.")
