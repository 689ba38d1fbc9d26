"""A setting is one record beside its column: pages, the API, its document, audit events and the admin site know it."""

import html
from dataclasses import replace

import pytest

from flagadmin.core.audit.models import AuditEvent
from projects.projects import settings
from projects.projects.serializers import ProjectChanges
from tests.support.page_text import page_text

PAGE, API = "/projects/shop/settings/", "/api/admin/projects/shop"


@pytest.fixture(autouse=True)
def _renamed(monkeypatch):
    """A setting that exists gets other names: whatever shows the old ones has a list of its own."""
    modules = ("queries", "serializers", "settings_pages")
    known = [each for each in settings.SETTINGS if each.field != "refuse_broken_expectations"]
    [old] = {*settings.SETTINGS} - {*known}
    new = replace(
        old, member="strictExpectations", group="Strictness", label="Be strict", help="Refuses more."
    )
    for module in (*(f"projects.projects.{name}" for name in modules), "projects.admin"):
        monkeypatch.setattr(f"{module}.SETTINGS", (*known, new))


def test_a_setting_is_one_record(api, browse, shop):
    page = html.unescape(browse("owner").get(PAGE).text)
    assert all(text in page for text in ("Strictness", "Be strict", "Refuses more.", "strictExpectations"))
    assert "refuseBrokenExpectations" not in page
    admin_page = page_text(browse("admin").get("/admin/projects/project/shop/change/"))
    assert "Strictness" in admin_page

    assert api["owner"].put(API, {"strictExpectations": True}).status_code == 200
    shop.refresh_from_db()
    assert shop.refuse_broken_expectations is True
    overview = api["owner"].get(f"{API}/overview").json()
    assert (overview["strictExpectations"], "refuseBrokenExpectations" in overview) == (True, False)
    event = AuditEvent.objects.get(type="project-updated")
    assert (event.before["strictExpectations"], event.after["strictExpectations"]) == (False, True)
    assert ProjectChanges().fields["strictExpectations"].help_text == "Refuses more."
    assert (
        browse("owner")
        .post(PAGE, {"name": "Shop", "mode": "open", "default_stickiness": "default"})
        .status_code
        == 302
    )
    shop.refresh_from_db()
    assert shop.refuse_broken_expectations is False
