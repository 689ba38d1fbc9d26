"""The import pages: what is confirmed is what was seen, and once."""

import pickle
import re

import pytest
from django.utils import timezone

from importer.models import ImportRun
from projects.models import Flag
from tests.importer.console import confirm, export, fingerprint, preview

pytestmark = pytest.mark.django_db


def test_ticked_flags_are_excluded_by_the_one_button(browse):
    browser = browse("member")
    address, page = preview(browser, export(*(f"flag-{n:02}" for n in range(12))))
    assert "Import 12 flags<" in page.text
    confirm(browser, address, "flag-03", "flag-07")
    assert Flag.objects.count() == 10
    assert not Flag.objects.filter(name__in=["flag-03", "flag-07"]).exists()
    assert "10 flags written" in browser.get(address).text


def test_ticks_of_another_page_go_along(browse):
    _, page = preview(browse("member"), export(*(f"flag-{n:03}" for n in range(150))))
    browser = browse("member")
    page = browser.get(f"{page.wsgi_request.path}?page=2&flag=flag-001&flag=flag-120&flag=nosuch").text
    assert "Import 148 flags, exclude 2" in page
    assert '<input type="hidden" name="flag" value="flag-001"' in page
    assert re.search(r'value="flag-120"[^>]* checked', page)


def test_looking_changes_nothing(browse, shop):
    browser = browse("member")
    address, _ = preview(browser, export("a"))
    before = ImportRun.objects.values().get()
    Flag.objects.create(project=shop, name="a", created_at=timezone.now())
    for path in ("", "?format=csv", "?format=json", "evaluate/?context.userId=1", "progress/"):
        response = browser.get(address + path)
        assert response.status_code == 200
        b"".join(response) if response.streaming else response.content
    assert ImportRun.objects.values().get() == before


def test_what_changed_since_it_was_seen_is_told_and_can_be_confirmed_then(browse, shop, api):
    browser = browse("member")
    address, page = preview(browser, export("a", "b"))
    seen = fingerprint(page)
    sent = {"project": "shop", "environment": "production", "data": export("a", source="production")}
    sent["data"]["featureStrategies"][0]["parameters"]["rollout"] = "75"
    assert api["admin"].post("/api/admin/features-batch/import", sent).status_code == 200
    browser.get(address)  # in another tab

    stale = browser.post(address, {"do": "confirm", "fingerprint": seen})
    assert stale.status_code == 409
    assert "Nothing was imported." in stale.text
    assert re.search(r"a was changed at \d\d:\d\d", stale.text)
    assert "a: create → change." in stale.text
    assert "<del>75 %</del>" in stale.text
    assert not Flag.objects.filter(name="b").exists()

    assert browser.post(address, {"do": "confirm", "fingerprint": seen}).status_code == 409
    assert browser.post(address, {"do": "confirm", "fingerprint": fingerprint(stale)}).status_code == 302
    assert Flag.objects.filter(name="b").exists()


def test_a_form_without_what_was_seen_imports_nothing(browse):
    browser = browse("member")
    address, _ = preview(browser, export("a"))
    assert browser.post(address, {"do": "confirm"}).status_code == 409
    assert not Flag.objects.exists()


def test_blocked_flags_that_are_not_excluded_stop_the_import(browse):
    browser = browse("member")
    address, page = preview(browser, export("good", "bad name"))
    assert "1 flag is blocked: correct the file, or exclude it." in page.text
    refused = confirm(browser, address)
    assert refused.status_code == 400
    assert "Nothing was imported." in refused.text
    assert confirm(browser, address, "bad name").status_code == 302
    assert list(Flag.objects.values_list("name", flat=True)) == ["good"]


def test_an_excluded_parent_that_others_need_is_shown_before_anything_is_written(browse):
    browser = browse("member")
    parts = {"dependencies": [{"feature": "child", "dependencies": [{"feature": "parent"}]}]}
    address, _ = preview(browser, export("parent", "child", **parts))
    refused = confirm(browser, address, "parent")
    assert refused.status_code == 400
    assert "flag parent not found" in refused.text
    assert "Excluded:" in refused.text
    assert not Flag.objects.exists()


def test_two_tabs_do_not_import_twice(browse):
    browser = browse("member")
    address, page = preview(browser, export("a"))
    form = {"do": "confirm", "fingerprint": fingerprint(page)}
    browser.post(address, form)
    assert browser.post(address, form)["Location"] == address
    assert "This import is done and no longer pending." in browser.get(address).text


def test_large_files_are_planned_beside_the_workers_and_once(browse, settings, monkeypatch):
    apart = []

    def run_in_process(work, *args, **kwargs):
        apart.append(work.__name__)
        return pickle.loads(pickle.dumps(work(*args, **kwargs)))

    monkeypatch.setattr("importer.bulk_work.run_in_process", run_in_process)
    settings.IMPORT_PROCESS_BYTES = 0
    browser = browse("member")
    address, page = preview(browser, export("a", "b", "c"))
    browser.get(f"{address}?page=2&q=a&sort=flag")
    assert apart == ["upload"]

    page = browser.get(f"{address}evaluate/?context.userId=42").text
    assert "3 of 3 flags differ" in page
    browser.post(address, {"do": "exclude", "flag": "a"})
    browser.post(address, {"do": "confirm", "fingerprint": "another"})
    confirm(browser, address, "b")
    assert apart == ["upload", "evaluate_as_if_imported", "check", "confirm", "check", "confirm"]
    assert list(Flag.objects.values_list("name", flat=True)) == ["c"]


def test_a_large_urlencoded_form_is_refused(browse, settings):
    body = b"text=" + b"x" * settings.BODY_LIMIT

    refused = browse("admin").post("/import/", body, content_type="application/x-www-form-urlencoded")

    assert refused.status_code == 413
