"""Saved contexts in exports, where asked for, and in imports: planned, written, undone."""

import json
from typing import Any

import pytest
from django.db import transaction

from flagadmin.core.change_checks import BrokenExpectations
from flagadmin.core.errors import Conflict, NoAccess, ValidationError
from groups.access import Caller
from importer.apply.execute import import_body
from importer.apply.undo import undo_import
from importer.body.schemas import read_body
from importer.models import ImportRun
from importer.plan.build import plan_import
from playground.models import SavedContext
from projects.models import Flag, Project
from tests.support.cast import make_project
from tests.support.import_bodies import body, switch
from tests.support.page_text import page_text
from tests.support.playground import live_flag
from tests.support.records import events, refused

WHO = Caller.system()
EXPORT = "/api/admin/features-batch/export"
CONTEXT = {"userId": "42"}


def expects(flag: str, enabled: bool = True, variant: str | None = None) -> dict[str, Any]:
    return {"flag": flag, "enabled": enabled, "variant": variant}


def stored_expectation(flag: str, environment: str = "production", enabled: bool = True) -> dict[str, Any]:
    return expects(flag, enabled) | {"environment": environment}


def entry(name: str = "Ada", *expectations: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"name": name, "context": CONTEXT, "expectations": list(expectations)} | members


def given(*saved: dict[str, Any], on: bool = True, **target: Any) -> Any:
    data = {"featureEnvironments": [switch("cart", on)], "savedContexts": list(saved)}
    return body("cart", **{"environment": "production", **target, **data})


def imported(*saved: dict[str, Any], caller: Caller = WHO, **options: Any) -> ImportRun:
    return import_body(read_body(given(*saved, **options)), caller=caller)


def state() -> list[tuple[Any, ...]]:
    columns = ("name", "project", "context", "note", "expectations")
    return list(SavedContext.objects.order_by("name").values_list(*columns))


def problems(*saved: dict[str, Any]) -> list[tuple[str, str]]:
    plan = plan_import(read_body(given(*saved)), caller=WHO)
    return [(issue.path, issue.message) for issue in plan.issues]


# Export -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def cart(shop: Any) -> Flag:
    SavedContext.objects.create(
        name="Ada",
        project=shop,
        context=CONTEXT,
        note="Pays",
        expectations=[stored_expectation("cart"), stored_expectation("cart", "development")],
    )
    SavedContext.objects.create(name="Bea", context=CONTEXT, expectations=[stored_expectation("cart")])
    SavedContext.objects.create(name="Carl", context=CONTEXT, expectations=[stored_expectation("elsewhere")])
    return live_flag("cart")


def exported(api: Any, query: str = "?savedContexts=true", who: str = "viewer") -> dict[str, Any]:
    answer = api[who].post(f"{EXPORT}{query}", {"environment": "production", "project": "shop"})
    assert answer.status_code == 200
    document: dict[str, Any] = answer.json()
    return document


def test_an_export_has_them_only_where_asked_for(api, cart):
    assert "savedContexts" not in exported(api, "")
    assert "savedContexts" not in exported(api, "?savedContexts=false")
    assert exported(api)["savedContexts"] == [
        entry("Ada", expects("cart"), project="shop", note="Pays"),
        entry("Bea", expects("cart"), project=None, note=""),
    ]
    refused(
        api["viewer"].post(f"{EXPORT}?savedContexts=yes", {"environment": "production"}),
        400,
        "ValidationError",
    )


def test_the_console_exports_them_where_ticked(browse, cart):
    url = "/projects/shop/export?environment=production"
    assert "savedContexts" not in json.loads(browse("reader").get(url).content)
    document = json.loads(browse("reader").get(f"{url}&saved-contexts=yes").content)
    assert [saved["name"] for saved in document["savedContexts"]] == ["Ada", "Bea"]


def test_what_is_exported_can_be_imported_elsewhere(api, cart):
    document = exported(api)
    before = state()
    Flag.objects.all().delete()
    SavedContext.objects.exclude(name="Carl").delete()
    import_body(read_body(document, project="shop", environment="production"), caller=WHO)
    [ada, *rest] = before
    assert state() == [(*ada[:4], [stored_expectation("cart")]), *rest]
    run = import_body(read_body(document, project="shop", environment="production"), caller=WHO)
    assert run.saved_contexts == {}


# Import -------------------------------------------------------------------------------------------------------------


def test_created_changed_and_left(shop):
    for name, note in (("Bea", "Old"), ("Carl", "")):
        SavedContext.objects.create(name=name, context=CONTEXT, note=note)
    saved = [entry("Ada", expects("cart"), project="any"), entry("Bea", note="New"), entry("Carl")]
    plan = plan_import(read_body(given(*saved)), caller=WHO)
    assert [planned.action for planned in plan.saved_contexts.values()] == ["create", "change", "same"]

    run = imported(*saved)

    assert state() == [
        ("Ada", "shop", CONTEXT, "", [stored_expectation("cart")]),
        ("Bea", None, CONTEXT, "New", []),
        ("Carl", None, CONTEXT, "", []),
    ]
    assert run.saved_contexts.keys() == {"Ada", "Bea"}
    [created] = events("saved-context-created")
    [updated] = events("saved-context-updated")
    assert (created.subject, created.project, updated.subject) == ("Ada", "shop", "Bea")
    assert (updated.before["note"], updated.after["note"]) == ("Old", "New")


def test_what_is_expected_elsewhere_and_of_other_flags_stays(shop):
    live_flag("other")
    kept = [
        stored_expectation("cart", "development"),
        stored_expectation("other"),
        stored_expectation("gone"),
    ]
    SavedContext.objects.create(
        name="Ada", context=CONTEXT, expectations=[stored_expectation("cart", enabled=False), *kept]
    )
    imported(entry("Ada", expects("cart")))
    assert state()[0][4] == [stored_expectation("cart"), *kept]
    imported(entry("Ada"))
    assert state()[0][4] == kept


def test_what_a_file_may_not_have(shop):
    docs = make_project("docs")
    live_flag("page", "docs")
    SavedContext.objects.create(name="Theirs", project=docs)
    at = "data.savedContexts[0]"
    assert problems(entry(" ")) == [(f"{at}.name", "saved context : a name is required")]
    assert problems(entry("Theirs")) == [(f"{at}.name", "saved context Theirs: belongs to another project")]
    assert problems(entry(), entry()) == [
        ("data.savedContexts[1].name", "saved context Ada: is listed more than once")
    ]
    assert problems(entry("Ada", expects("nowhere"))) == [
        (f"{at}.expectations[0].flag", "saved context Ada: flag nowhere not found")
    ]
    assert problems(entry("Ada", expects("page"), project="shop")) == [
        (f"{at}.expectations[0].flag", "saved context Ada: flag page not found in shop")
    ]
    assert problems(entry("Ada", expects("cart"), expects("cart", enabled=False)))[0][0] == (
        f"{at}.expectations[1]"
    )
    [(path, _)] = problems(entry("Ada", context={"properties": 5}))
    assert path.startswith(f"{at}.context")
    with pytest.raises(ValidationError) as refusal:
        read_body(given(entry("Ada", {"flag": "cart"}), {"name": "Bea"}))
    assert {problem.path for problem in refusal.value.details} == {
        f"{at}.expectations[0].enabled",
        "data.savedContexts[1].context",
    }


def test_too_many(shop, monkeypatch):
    monkeypatch.setattr("importer.plan.build.MAX_IN_A_PROJECT", 1)
    assert problems(entry("Ada"), entry("Bea", project="shop")) == []
    [(path, message)] = problems(entry("Ada"), entry("Bea"))
    assert path == "data.savedContexts"
    assert "more than 1 saved contexts of no project" in message


def test_as_many_expectations_as_allowed_are_too_many_with_those_of_others(shop, monkeypatch):
    monkeypatch.setattr("importer.plan.build.MAX_EXPECTATIONS", 1)
    assert problems(entry("Ada", expects("cart"))) == []
    live_flag("other")
    SavedContext.objects.create(name="Ada", context=CONTEXT, expectations=[stored_expectation("other")])
    [(path, message)] = problems(entry("Ada", expects("cart")))
    assert path == "data.savedContexts[0].expectations"
    assert message == "saved context Ada: would be more than 1 with those of other flags"


def test_nothing_is_expected_of_a_flag_that_the_file_archives(shop):
    live_flag("cart")
    archiving = given(entry("Ada", expects("cart")), on=False)
    archiving["data"]["features"][0]["archived"] = True
    plan = plan_import(read_body(archiving), caller=WHO)
    assert [issue.message for issue in plan.issues] == ["saved context Ada: flag cart not found"]


def test_those_of_no_project_need_a_permission_of_their_own(callers, shop):
    imported(entry("Ada", project="shop"), caller=callers("owner"))
    with pytest.raises(NoAccess, match="context field"):
        imported(entry("Bea"), caller=callers("owner"))
    assert [name for name, *_ in state()] == ["Ada"]


def test_excluded_flags_take_what_is_expected_of_them_along(browse, shop):
    editor = browse("admin")
    sent = given(entry("Ada", expects("cart"), expects("bag")))
    sent["data"]["features"].append({"name": "bag"})
    file = {"text": json.dumps(sent), "project": "shop", "environment": "production"}
    url = editor.post("/import/", file)["Location"]
    assert "Creates 1 saved context: Ada." in page_text(editor.get(url))
    editor.post(url, {"do": "exclude", "flag": "bag"})
    run = ImportRun.objects.get()
    editor.post(url, {"do": "confirm", "fingerprint": run.fingerprint})
    assert state()[0][4] == [stored_expectation("cart")]
    assert "and 1 saved context" in page_text(editor.get(url))
    editor.post(f"{url}undo")
    assert state() == []


def test_a_file_of_saved_contexts_alone(browse, shop):
    admin, sent = browse("admin"), body(environment="production", savedContexts=[entry("Ada")])
    file = {"text": json.dumps(sent), "project": "shop", "environment": "production"}
    url = admin.post("/import/", file)["Location"]
    assert "Import 0 flags and 1 saved context" in page_text(admin.get(url))
    admin.post(url, {"do": "confirm", "fingerprint": ImportRun.objects.get().fingerprint})
    assert [name for name, *_ in state()] == ["Ada"]
    assert "Restores or removes 1 saved context." in page_text(admin.get(f"{url}undo"))


def test_the_preview_names_what_the_file_would_not_meet(browse, shop):
    """What the file replaces is not told to break, and neither is what it brings."""
    imported(entry("Ada", expects("cart")), entry("Bea", expects("cart")))
    admin = browse("admin")
    sent = given(entry("Ada", expects("cart", enabled=False)), entry("New", expects("cart")), on=False)
    file = {"text": json.dumps(sent), "project": "shop", "environment": "production"}
    url = admin.post("/import/", file)["Location"]
    text = page_text(admin.get(f"{url}who-changes/", headers={"HX-Target": "who-changes"}))
    first, second = "Expectations of the file that are not met after the import", "Breaks 1 expectation"
    assert f"{first} cart is off in production for New, expected on" in text
    assert f"{second} cart is off in production for Bea, expected on" in text
    assert "for Ada" not in text


def test_a_preview_is_outdated_when_one_changes(shop):
    first = plan_import(read_body(given(entry("Ada"))), caller=WHO).fingerprint
    SavedContext.objects.create(name="Ada", context={"userId": "7"})
    assert plan_import(read_body(given(entry("Ada"))), caller=WHO).fingerprint != first


# Undo ---------------------------------------------------------------------------------------------------------------


def test_undone_with_the_flags(shop):
    SavedContext.objects.create(name="Bea", context=CONTEXT, note="Old")
    before = state()
    run = imported(entry("Ada", expects("cart")), entry("Bea", note="New"))
    undo_import(run.id, caller=WHO)
    assert state() == before
    assert [event.subject for event in events("saved-context-deleted", "saved-context-updated")] == [
        "Bea",
        "Ada",
        "Bea",
    ]


@pytest.mark.parametrize("change", ["changed", "deleted"])
def test_not_undone_once_one_has_changed(shop, change):
    run = imported(entry("Ada"))
    rows = SavedContext.objects.filter(name="Ada")
    if change == "changed":
        rows.update(note="Mine")
    else:
        rows.delete()
    with pytest.raises(Conflict, match="Saved context Ada was changed"), transaction.atomic():
        undo_import(run.id, caller=WHO)
    assert Flag.objects.filter(name="cart").exists()


# With a project that refuses changes --------------------------------------------------------------------------------


def test_what_the_file_expects_counts_not_what_it_replaces(shop):
    Project.objects.update(refuse_broken_expectations=True)
    imported(entry("Ada", expects("cart")))
    with pytest.raises(BrokenExpectations), transaction.atomic():
        imported(on=False)
    run = imported(entry("Ada", expects("cart", enabled=False)), on=False)
    undo_import(run.id, caller=WHO)
    assert state()[0][4] == [stored_expectation("cart")]
