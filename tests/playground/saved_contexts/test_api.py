"""The API of saved contexts, and what a comparison makes of their names."""

import pytest

from playground.models import SavedContext
from playground.saved_contexts import actions
from projects.models import Project
from tests.support.cast import make_project
from tests.support.for_each import for_each
from tests.support.page_text import page_text
from tests.support.playground import live_flag
from tests.support.records import events, refused

URL = "/api/admin/playground/contexts"
ADA = {
    "name": "Ada",
    "project": "shop",
    "context": {"userId": "42", "properties": {"plan": "pro"}},
    "note": "Pays by invoice.",
}


@pytest.fixture
def ada(api):
    return api["member"].post(URL, ADA).json()


def test_created_and_read(api, ada):
    shown = api["reader"].get(f"{URL}/{ada['id']}").json()
    assert shown == ada
    assert {key: shown[key] for key in ADA} == ADA
    assert (shown["createdBy"], shown["updatedBy"]) == ("member", "member")
    assert shown["createdAt"]
    assert shown["updatedAt"]
    [event] = events("saved-context-created")
    assert (event.project, event.subject, event.after["context"]) == ("shop", "Ada", ADA["context"])


def test_stored_as_the_playground_reads_it(api):
    context = {"userId": 42, "sessionId": None, "properties": {"beta": True, "gone": None}}
    made = api["editor"].post(URL, {"name": "  Bea ", "context": context}).json()
    assert made["context"] == {"userId": "42", "properties": {"beta": "true"}}
    assert (made["name"], made["project"], made["note"]) == ("Bea", None, "")


def test_listed_for_those_who_read_the_project(api, ada):
    make_project("docs")
    SavedContext.objects.create(name="Docs reader", project_id="docs")
    SavedContext.objects.create(name="Everybody")
    assert names(api, "reader") == ["Ada", "Everybody"]
    assert names(api, "viewer") == ["Ada", "Docs reader", "Everybody"]
    assert names(api, "viewer", "?project=docs") == ["Docs reader", "Everybody"]
    refused(api["reader"].get(f"{URL}?project=docs"), 400, "ValidationError")


def names(api, who, query=""):
    return [saved["name"] for saved in api[who].get(URL + query).json()["contexts"]]


def test_not_found_where_the_project_cannot_be_read(api):
    saved = SavedContext.objects.create(name="Docs reader", project=make_project("docs"))
    refused(api["reader"].get(f"{URL}/{saved.pk}"), 404, "NotFoundError")
    refused(api["owner"].put(f"{URL}/{saved.pk}", {"note": "x"}), 404, "NotFoundError")
    refused(api["owner"].delete(f"{URL}/{saved.pk}"), 404, "NotFoundError")


def test_who_may_write(api, ada):
    everywhere = {"name": "Everybody", "context": {}}
    assert api["reader"].post(URL, ADA | {"name": "B"}).status_code == 403
    assert api["reader"].put(f"{URL}/{ada['id']}", {"note": "x"}).status_code == 403
    assert api["reader"].delete(f"{URL}/{ada['id']}").status_code == 403
    assert api["member"].post(URL, everywhere).status_code == 403
    assert api["owner"].post(URL, everywhere).status_code == 403
    made = api["editor"].post(URL, everywhere)
    assert made.status_code == 201
    assert api["member"].put(f"{URL}/{made.json()['id']}", {"note": "x"}).status_code == 403


def test_changed(api, ada):
    changed = api["owner"].put(f"{URL}/{ada['id']}", {"context": {"userId": "7"}, "name": "Ada L."})
    assert changed.status_code == 200
    shown = changed.json()
    assert (shown["context"], shown["name"], shown["note"]) == ({"userId": "7"}, "Ada L.", ADA["note"])
    assert (shown["createdBy"], shown["updatedBy"]) == ("member", "owner")
    [event] = events("saved-context-updated")
    assert (event.before["context"], event.after["context"]) == (ADA["context"], {"userId": "7"})


def test_what_changes_nothing_is_no_event(api, ada):
    assert api["owner"].put(f"{URL}/{ada['id']}", ADA).json() == ada
    assert events("saved-context-updated") == []


def test_deleted(api, ada):
    assert api["member"].delete(f"{URL}/{ada['id']}").status_code == 204
    assert not SavedContext.objects.exists()
    assert events("saved-context-deleted")[0].before["name"] == "Ada"
    refused(api["member"].delete(f"{URL}/{ada['id']}"), 404, "NotFoundError")


def test_what_is_listed_can_be_created_elsewhere(api, ada):
    [listed] = api["member"].get(URL).json()["contexts"]
    SavedContext.objects.all().delete()
    made = api["member"].post(URL, listed).json()
    assert {key: made[key] for key in ADA} == ADA


def test_goes_with_its_project(api, browse, ada):
    SavedContext.objects.create(name="Everybody")
    page = page_text(browse("owner").get("/projects/shop/delete/"))
    assert "1 saved context" in page
    assert api["owner"].delete("/api/admin/projects/shop").status_code in (200, 204)
    assert not Project.objects.filter(pk="shop").exists()
    assert [saved.name for saved in SavedContext.objects.all()] == ["Everybody"]
    [kept] = events("project-deleted")[0].before["savedContexts"]
    assert kept == {key: ADA[key] for key in ("name", "context", "note")} | {"expectations": []}


def test_a_name_is_taken_once(api, ada):
    refused(api["editor"].post(URL, {"name": "Ada", "context": {}}), 409, "NameExistsError")
    other = api["member"].post(URL, ADA | {"name": "Bea"}).json()
    refused(api["member"].put(f"{URL}/{other['id']}", {"name": "Ada"}), 409, "NameExistsError")


@for_each(
    ("members", "path"),
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"note": "x" * 2_001}, "note"),
        ({"context": []}, "context"),
        ({"context": {"userId": ["42"]}}, "context.userId"),
        ({"context": {"properties": {"plan": {}}}}, "context.properties.plan"),
        ({"context": {"currentTime": "tomorrow"}}, "context.currentTime"),
        ({"context": {"a": "x" * 60_000, "b": "x" * 60_000}}, "context"),
        ({"project": "nowhere"}, "project"),
    ],
)
def test_refused(api, members, path):
    record = refused(api["admin"].post(URL, ADA | members), 400, "ValidationError")
    assert record["details"][0]["path"] == path
    assert not SavedContext.objects.exists()


def test_so_many_and_no_more(api, ada, monkeypatch):
    assert actions.MAX_IN_A_PROJECT == 1_000
    monkeypatch.setattr(actions, "MAX_IN_A_PROJECT", 1)
    refused(api["member"].post(URL, ADA | {"name": "Bea"}), 400, "ValidationError")
    assert api["editor"].post(URL, {"name": "Bea", "context": {}}).status_code == 201


def test_a_comparison_by_name(api, ada):
    live_flag("lounge", strategies=[{"name": "userWithId", "parameters": {"userIds": "42"}}])
    SavedContext.objects.create(name="Everybody")
    body = {
        "from": {"environment": "development"},
        "to": {"environment": "production"},
        "contexts": {"saved": ["Everybody", "Ada"], "explicit": [{"userId": "42"}]},
    }
    answer = api["reader"].post("/api/admin/playground/compare", body).json()
    assert answer["contexts"] == 3
    assert answer["counts"]["offToOn"] == 2
    ada_changes, given_changes = answer["examples"]
    assert (ada_changes["savedContext"], ada_changes["context"]) == ("Ada", {"userId": "42", "plan": "pro"})
    assert "savedContext" not in given_changes
