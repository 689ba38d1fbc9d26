"""The import pages: upload, preview, excluding flags, importing, undo."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from groups.access import Caller
from groups.models import User
from importer.apply.execute import import_body
from importer.body.schemas import read_body
from importer.models import ImportRun
from projects.models import Flag, FlagEnvironment
from projects.projects.actions import set_flag_favorite
from tests.importer.console import bring, confirm, export, preview
from tests.support.cast import make_project
from tests.support.page_text import page_text

pytestmark = pytest.mark.django_db


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


def test_undoing_says_which_flags_it_deletes_archives_and_restores(browse):
    browser = browse("member")
    address, _ = preview(browser, export("a"))
    confirm(browser, address)
    changed = export("a", "b", "c")
    changed["featureStrategies"][0]["parameters"]["rollout"] = "75"
    address, _ = preview(browser, changed)
    confirm(browser, address)
    set_flag_favorite("shop", "c", True, caller=Caller(user=User.objects.get(username="member")))
    text = page_text(browser.get(f"{address}undo"))
    assert all(part in text for part in ("Restores a.", "Deletes b.", "Archives, because in use: c.")), text
    browser.post(f"{address}undo")
    text = page_text(browser.get(address))
    assert "Restored a. Deleted b. Archived, because it was already in use: c." in text


def test_an_unknown_action_is_named_with_the_choices(browse):
    browser = browse("member")
    address, _ = preview(browser, export("a"))
    text = page_text(browser.post(address, {"do": "nope"}, follow=True))
    assert "do: must be one of confirm, copy, convert, exclude, include, restore, check, not 'nope'" in text


def test_undoing_many_flags_is_asked_only_of_those_who_may_while_it_is_possible(browse, monkeypatch):
    monkeypatch.setattr("importer.pages.run.MAX_PLANNED", 0)
    browser = browse("member")
    address, _ = preview(browser, export("a"))
    pending = page_text(browser.get(f"{address}undo"))
    assert "Only a completed one can be undone." in pending
    confirm(browser, address)
    assert "Restores changed flags." in page_text(browser.get(f"{address}undo"))
    assert browse("viewer").get(f"{address}undo").status_code == 403
    browser.post(f"{address}undo")
    undone = page_text(browser.get(f"{address}undo"))
    assert "This import is undone. Only a completed one can be undone." in undone
    assert "Restores changed flags." not in undone


def test_undo_is_refused_once_something_has_changed(browse):
    browser = browse("member")
    address, _ = preview(browser, export("a"))
    confirm(browser, address)
    FlagEnvironment.objects.filter(flag__name="a").update(enabled=False)
    browser.post(f"{address}undo")
    for url in (address, f"{address}undo"):
        text = page_text(browser.get(url))
        assert "a was changed" in text
        assert "so it cannot be undone" in text
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
    assert "You cannot import into any project: that needs &quot;Edit flags&quot; there." in page
    assert 'disabled aria-describedby="blocked"' in page


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


def test_the_last_target_is_chosen_again_until_the_address_names_another(browse):
    browser = browse("member")
    assert browser.get("/import/").text.count("selected>Choose…") == 2
    preview(browser, export("a"))
    page = browser.get("/import/").text
    assert '<option value="shop" selected>' in page
    assert '<option value="production" selected>' in page
    elsewhere = browser.get("/import/", {"project": "shop", "environment": "development"}).text
    assert '<option value="development" selected>' in elsewhere
    assert browse("admin").get("/import/").text.count("selected>Choose…") == 2


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


@pytest.mark.parametrize("by_page", [True, False])
def test_the_result_does_not_name_projects_that_others_may_not_read(browse, callers, by_page):
    secret = make_project("secret")
    Flag.objects.create(name="old", project=secret, created_at=timezone.now(), archived_at=timezone.now())
    if by_page:
        browser = browse("admin")
        address, page = preview(browser, export("a", "old"))
        assert "old is archived in project secret" in page_text(page)
        confirm(browser, address)
    else:
        document = {"project": "shop", "environment": "production", "data": export("a", "old")}
        address = f"/import/{import_body(read_body(document), caller=callers('admin')).id}/"
    for form in ("", "?format=json"):
        seen = browse("member").get(address + form)
        text = seen.getvalue().decode() if form else page_text(seen)
        assert ("secret" in text, "old is archived in another project" in text) == (False, True)


def test_a_viewer_may_not_undo(browse):
    browser = browse("member")
    address, _ = preview(browser, export("a"))
    confirm(browser, address)
    response = browse("viewer").post(f"{address}undo")
    assert (response.status_code, browse("outsider").get(f"{address}undo").status_code) == (403, 404)
    assert "You need" in response.text
    assert "Undo import" not in browse("viewer").get(address).text
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
    assert lines[1].endswith("member,shop / production,console,1 new,Done")


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
