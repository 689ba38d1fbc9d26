"""Deleting a project: its blockers, its backup, what changed since, who may not."""

import re

from groups.models import Grant
from groups.permissions import BuiltIn
from projects.models import Flag, Project
from tests.support.cast import make_user
from tests.support.scenery import scenery
from tests.support.walks import read_text

__all__ = ["scenery"]

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


def test_the_backup_of_a_project_is_downloaded(walk, scenery):
    page = walk("admin", DELETE)
    page.press("Download a backup (JSON)")
    assert 'filename="legacy-portal-backup-' in page.answer["Content-Disposition"]


def test_what_somebody_else_changed_since_the_page_is_told(walk, scenery):
    Flag.objects.filter(project="legacy-portal").update(archived_at="2026-01-01T00:00:00Z")
    page = walk("admin", DELETE)
    Grant.objects.create(role_id=BuiltIn.MEMBER, project_id="legacy-portal", user=make_user("late"))
    page.fill("Type legacy-portal to confirm", "legacy-portal")
    page.press("Delete project legacy-portal")
    assert "Nothing was deleted. This is how it is now." in read_text(page.page.select_one("[role=alert]"))
    assert "the access of 1 person" in page.text
    assert Project.objects.filter(pk="legacy-portal").exists()


def test_a_viewer_is_not_offered_deletion_and_is_refused_in_words(walk, scenery):
    page = walk("viewer", "/projects/legacy-portal/")
    assert not any("Delete project" in name for name in page.names())
    page.open(DELETE)
    assert page.heading == 'You need the "Archive and delete the project" permission in Legacy portal.'
    assert "Delete project legacy-portal" not in page.names()


def test_the_default_project_says_why_it_stays(walk, scenery):
    assert "The default project cannot be deleted." in walk("admin", "/projects/default/delete/").text
