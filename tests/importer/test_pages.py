"""The import pages: upload, preview, excluding flags, importing, undo."""

import json
import pickle
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from importer.models import ImportRun
from projects.models import Flag, FlagEnvironment
from tests.support.cast import make_project

pytestmark = pytest.mark.django_db


def export(*names, source="development", **parts):
    """An export of new flags that are on for half of the users."""
    return {
        "features": [{"name": name} for name in names],
        "featureStrategies": [
            {"name": "flexibleRollout", "featureName": name, "parameters": {"rollout": "50"}}
            for name in names
        ],
        "featureEnvironments": [
            {"name": name, "featureName": name, "environment": source, "enabled": True} for name in names
        ],
        "tagTypes": [],
    } | parts


def bring(browser, document, project="shop", environment="production", **more):
    text = document if isinstance(document, str) else json.dumps(document)
    return browser.post("/import/", {"text": text, "project": project, "environment": environment} | more)


def preview(browser, document, **target):
    response = bring(browser, document, **target)
    assert response.status_code == 302, response.text
    return response["Location"], browser.get(response["Location"])


def fingerprint(page):
    return re.search(r'name="fingerprint" value="(\w+)"', page.text)[1]


def confirm(browser, address, *excluded):
    """Presses the button of the page as it is now."""
    seen = fingerprint(browser.get(address))
    return browser.post(address, {"do": "confirm", "fingerprint": seen, "flag": excluded})


def test_from_file_to_result(browse):
    browser = browse("member")
    file = SimpleUploadedFile("export.json", json.dumps(export("a", "b")).encode())
    address = bring(browser, "", file=file)["Location"]
    page = browser.get(address).text
    assert "2 new. Nothing has been written." in page
    assert "Import 2 flags" in page
    assert not Flag.objects.exists()

    assert confirm(browser, address)["Location"] == address
    page = browser.get(address).text
    assert "2 flags written" in page
    assert "from export.json" in page
    assert FlagEnvironment.objects.get(flag__name="a", environment="production").enabled
    assert not FlagEnvironment.objects.get(flag__name="a", environment="development").enabled


def test_undo(browse):
    browser = browse("member")
    address, _ = preview(browser, export("a"))
    confirm(browser, address)
    browser.post(address, {"do": "undo"})
    assert "This import was undone" in browser.get(address).text
    assert not Flag.objects.exists()


def test_undo_is_refused_once_something_has_changed(browse):
    browser = browse("member")
    address, _ = preview(browser, export("a"))
    confirm(browser, address)
    FlagEnvironment.objects.filter(flag__name="a").update(enabled=False)
    browser.post(address, {"do": "undo"})
    page = browser.get(address).text
    assert "a " in page
    assert "has changed" in page or "was changed" in page
    assert not Flag.objects.get(name="a").is_archived


def test_warnings_before_production(browse):
    _, page = preview(browse("member"), export("a"))
    assert (
        "exported from <strong>development</strong>; you are importing into <strong>production</strong>"
        in page.text
    )
    assert "Users in production get the changes immediately." in page.text
    _, page = preview(browse("member"), export("a"), environment="development")
    assert "exported from" not in page.text


def test_a_difference_field_by_field(browse):
    browser = browse("member")
    address, _ = preview(browser, export("a"))
    confirm(browser, address)
    changed = export("a", source="production")
    changed["featureStrategies"][0]["parameters"]["rollout"] = "75"
    _, page = preview(browser, changed)
    assert "<del>50 %</del>" in page.text
    assert "<ins>75 %</ins>" in page.text
    confirm(browser, page.wsgi_request.path)
    assert "<ins>75 %</ins>" in browser.get(page.wsgi_request.path).text


def test_every_problem_with_its_path_and_the_button_off(browse):
    document = export("good", "bad name")
    document["featureStrategies"].append({"name": "nosuch", "featureName": "good"})
    address, page = preview(browse("member"), document)
    assert "data.features[1].name" in page.text
    assert "data.featureStrategies[2].name" in page.text
    assert 'disabled aria-describedby="blocked"' in page.text
    confirm(browse("member"), address)
    assert not Flag.objects.exists()


def test_leave_out_and_put_back(browse):
    browser = browse("member")
    address, _ = preview(browser, export("good", "bad name"))
    browser.post(address, {"do": "exclude", "flag": ["bad name"]})
    page = browser.get(address).text
    assert "Import 1 flag<" in page
    assert "Excluded:" in page
    browser.post(address, {"do": "include", "flag": ["bad name"]})
    assert "1 problem" in browser.get(address).text
    browser.post(address, {"do": "exclude", "flag": ["bad name"]})
    confirm(browser, address)
    assert list(Flag.objects.values_list("name", flat=True)) == ["good"]


def test_a_missing_segment_blocks_the_flags_that_use_it_until_they_are_left_out(browse):
    browser = browse("member")
    document = export("plain", "needs-vip", segments=[{"id": 7, "name": "vip"}])
    document["featureStrategies"].append({"name": "default", "featureName": "needs-vip", "segments": [7]})
    address, page = preview(browser, document)
    assert "segment vip does not exist" in page.text
    assert "Create it, or exclude these flags." in page.text
    assert "1 new, 1 blocked." in page.text

    browser.post(address, {"do": "exclude", "flag": ["needs-vip"]})
    confirm(browser, address)
    assert list(Flag.objects.values_list("name", flat=True)) == ["plain"]


def test_an_archived_flag_can_be_restored_where_it_is_skipped(browse, shop):
    browser = browse("member")
    old = Flag.objects.create(project=shop, name="old", archived_at=timezone.now(), created_at=timezone.now())
    address, page = preview(browser, export("old"))
    assert "old is archived and will be skipped." in page.text
    assert 'form="restore" name="flag" value="old"' in page.text
    assert 'aria-label="Exclude old"' not in page.text

    back = browser.post(address, {"do": "restore", "flag": "old"}, follow=True)
    assert back.redirect_chain[-1][0] == address
    old.refresh_from_db()
    assert not old.is_archived
    assert "Restore it" not in back.text


def test_who_may_import_nowhere_is_told(browse):
    page = browse("viewer").get("/import/").text
    assert "You cannot change flags in any project." in page
    assert 'disabled aria-describedby="blocked"' in page


def test_a_change_after_the_check_is_told_and_nothing_written(browse):
    browser = browse("member")
    address, _ = preview(browser, export("a"))
    confirm(browser, address)
    again = export("a", source="production", featureStrategies=[])
    address, _ = preview(browser, again)
    Flag.objects.update(description="changed meanwhile")
    response = browser.post(address, {"do": "confirm"}, follow=True)
    assert "changed" in response.text
    assert "Check again" in response.text
    assert ImportRun.objects.filter(state="pending").count() == 1


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"features": 5}', '{"features": [{"nam": "x"}], "tagTypes": []}']
)
def test_a_file_that_is_none(browse, text):
    response = bring(browse("member"), text)
    assert response.status_code == 400
    assert "This file cannot be imported as it is" in response.text or "not valid JSON" in response.text
    assert not ImportRun.objects.exists()


def test_nothing_given_and_no_target(browse):
    response = browse("member").post("/import/", {"text": " ", "project": "", "environment": ""})
    assert response.status_code == 400
    assert "Choose a file, or paste its content below." in response.text
    assert response.text.count("This field is required.") == 2


def test_only_targets_that_one_may_change_are_offered(browse):
    make_project("docs")
    page = browse("member").get("/import/").text
    assert '<option value="shop">' in page
    assert '<option value="docs">' not in page
    assert bring(browse("member"), export("a"), project="docs").status_code == 400
    assert '<option value="shop">' not in browse("viewer").get("/import/").text


def test_another_persons_file_stays_unseen(browse):
    address, _ = preview(browse("member"), export("a"))
    assert browse("admin").get(address).status_code == 404
    assert browse("admin").post(address, {"do": "confirm"}).status_code == 404


def test_the_result_is_for_whoever_may_read_the_project(browse):
    browser = browse("member")
    address, _ = preview(browser, export("a"))
    confirm(browser, address)
    assert browse("viewer").get(address).status_code == 200
    assert browse("outsider").get(address).status_code == 404
    assert address in browse("viewer").get("/imports/").text
    assert address not in browse("outsider").get("/imports/").text


def test_a_viewer_may_not_undo(browse):
    browser = browse("member")
    address, _ = preview(browser, export("a"))
    confirm(browser, address)
    response = browse("viewer").post(address, {"do": "undo"}, follow=True)
    assert "You need" in response.text
    assert "Undo this import" not in response.text
    assert not Flag.objects.get(name="a").is_archived


def test_reports(browse):
    browser = browse("member")
    address, _ = preview(browser, export("a"))
    report = json.loads(b"".join(browser.get(f"{address}?format=json").streaming_content))
    assert report["flags"][0]["name"] == "a"
    assert report["counts"]["create"] == 1
    lines = b"".join(browser.get(f"{address}?format=csv").streaming_content).decode().splitlines()
    assert lines[0] == "Flag,Action,Changes"
    assert lines[1].startswith("a,create,")


def test_evaluate_as_if_imported(browse):
    browser = browse("member")
    address, _ = preview(browser, export("a", featureStrategies=[{"name": "default", "featureName": "a"}]))
    page = browser.get(f"{address}evaluate/?context.userId=42")
    assert "1 of 1 flag differs" in page.text
    assert "Not found" in page.text
    assert "On for everyone" in page.text
    assert not Flag.objects.exists()


def test_history_as_csv(browse):
    browser = browse("member")
    address, _ = preview(browser, export("a"))
    confirm(browser, address)
    lines = b"".join(browser.get("/imports/?format=csv").streaming_content).decode().splitlines()
    assert lines[1].endswith("member,shop / production,console,1 new,done")


def test_progress_leads_to_the_result(browse):
    browser = browse("member")
    address, _ = preview(browser, export("a"))
    assert "Checking what the import changes" in browser.get(f"{address}progress/").text
    confirm(browser, address)
    assert browser.get(f"{address}progress/")["HX-Redirect"] == address


def test_a_large_preview_is_paged(browse):
    names = [f"flag-{n:03}" for n in range(250)]
    _, page = preview(browse("member"), export(*names))
    assert "1–100 of 250" in page.text
    assert "Import 250 flags" in page.text


# What is confirmed is what was seen ------------------------------------------------------------------------


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

    monkeypatch.setattr("importer.isolation.run_in_process", run_in_process)
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
    assert apart == ["upload", "as_if_imported", "check", "confirm", "check", "confirm"]
    assert list(Flag.objects.values_list("name", flat=True)) == ["c"]


def test_a_large_urlencoded_form_is_refused(browse, settings):
    body = b"text=" + b"x" * settings.BODY_LIMIT

    refused = browse("admin").post("/import/", body, content_type="application/x-www-form-urlencoded")

    assert refused.status_code == 413
