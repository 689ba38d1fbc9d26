"""Deleting a project whose flags stand against it."""

import re

from projects.models import Project
from tests.support.walks import read_text

DELETE = "/projects/legacy-portal/delete/"


def test_a_project_is_deleted_after_its_blockers_are_archived(walk, scenery):
    page = walk("admin", DELETE)
    assert "2 flags are still active. Archive them first; the project can be deleted after that." in page.text
    assert re.search(r"portal-web, \d+ minutes ago", read_text(page.part("portal-read-only")))
    assert page.control("Delete project legacy-portal").has_attr("disabled")
    assert read_text(page.page.select_one("#blocked")) == "2 flags are still active."
    page.tick("Select portal-banner")
    page.press("Archive selected")
    page.press("Archive flag portal-banner")
    assert "Archived flag portal-banner." in page.status_message
    page.press("Archive flag portal-read-only…")
    assert "portal-read-only was evaluated by portal-web" in page.text
    page.press("Archive flag portal-read-only")
    assert (
        "This cannot be undone. It removes for good: project legacy-portal and its 4 archived flags."
        in page.text
    )

    page.fill("Type legacy-portal to confirm", "legacy")
    page.press("Delete project legacy-portal")
    assert page.field("Type legacy-portal to confirm")["aria-invalid"] == "true"  # it gets the focus
    assert (
        read_text(page.page.select_one("#confirm_error"))
        == "Type legacy-portal to confirm; you typed legacy."
    )
    assert Project.objects.filter(pk="legacy-portal").exists()
    page.fill("Type legacy-portal to confirm", "legacy-portal")
    page.press("Delete project legacy-portal")
    assert page.address == "/projects/"
    assert "Deleted project legacy-portal and its 4 archived flags." in page.status_message
    assert "Legacy portal" not in page.names()
    assert not Project.objects.filter(pk="legacy-portal").exists()
