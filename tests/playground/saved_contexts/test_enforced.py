"""Who may say what is expected of a project's flags, and which projects refuse for it."""

from importlib import import_module
from typing import Any

import pytest
from django.db import connection

from groups.models import Grant
from groups.permissions import BuiltIn
from importer.apply.undo import undo_import
from importer.models import ImportRun
from playground.models import SavedContext
from playground.pages.lines import EffectsView
from playground.saved_contexts.effects import predict_effects
from projects.drafts import Draft, FlagEdit
from projects.flags.environments import actions as environments
from tests.playground.saved_contexts.guarded import OFF, WHO, cart, expected
from tests.support import import_bodies
from tests.support.cast import make_group, make_project
from tests.support.page_text import page_text
from tests.support.playground import live_flag
from tests.support.records import refused

__all__ = ["cart"]

pytestmark = pytest.mark.django_db(transaction=True)

URL = "/api/admin/playground/contexts"
IMPORT = "/api/admin/features-batch/import"


@pytest.fixture
def other(cart: Any) -> str:
    """A flag of shop of which nothing is expected yet."""
    return f"{OFF.replace('/cart/', '/other/')}"


def body(*expectations: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"name": "Bea", "context": {"userId": "7"}, "expectations": list(expectations)} | members


def stored(**fields: Any) -> SavedContext:
    """As it was saved before projects enforced what is expected: nobody knows by whom."""
    values = {"name": "Bea", "context": {"userId": "7"}, "expectations": [expected("other")]}
    return SavedContext.objects.create(**values | fields)


@pytest.mark.parametrize("project", [None, "shop"])
def test_an_editor_without_a_role_in_the_project_expects_nothing_of_its_flags(api, other, project):
    record = refused(api["editor"].post(URL, body(expected("other"), project=project)), 403, "NoAccessError")
    assert record["permissions"] == ["UPDATE_FEATURE"]
    assert "in Shop to change what is expected of its flags" in record["message"]
    assert not SavedContext.objects.filter(name="Bea").exists()
    assert api["owner"].post(other).status_code == 200


def test_an_editor_expects_something_of_flags_that_they_may_change(api, cart):
    live_flag("page", "default")
    made = api["editor"].post(URL, body(expected("page"))).json()
    assert [one["enforcedIn"] for one in made["expectations"]] == ["default"]


def test_those_of_the_project_say_what_is_expected(api, other):
    """In a context of all projects, too: it is the project's flag."""
    made = api["admin"].post(URL, body(expected("other"))).json()
    assert [one["enforcedIn"] for one in made["expectations"]] == ["shop"]
    refused(api["owner"].post(other), 409, "BrokenExpectationsError")


@pytest.mark.parametrize(
    "changes",
    [
        {"expectations": []},
        {"expectations": [expected("other", enabled=False)]},
        {"context": {"userId": "8"}},
    ],
    ids=["withdrawn", "changed", "of somebody else"],
)
def test_what_a_project_enforces_is_changed_by_its_people_alone(api, other, changes):
    made = api["admin"].post(URL, body(expected("other"))).json()
    refused(api["editor"].put(f"{URL}/{made['id']}", changes), 403, "NoAccessError")
    refused(api["editor"].delete(f"{URL}/{made['id']}"), 403, "NoAccessError")
    assert api["editor"].get(f"{URL}/{made['id']}").json() == made
    shown = api["editor"].put(f"{URL}/{made['id']}", {"note": "Pays", "expectations": made["expectations"]})
    assert shown.json()["expectations"] == made["expectations"]
    assert api["admin"].put(f"{URL}/{made['id']}", changes).status_code == 200
    assert api["admin"].delete(f"{URL}/{made['id']}").status_code == 204


def test_what_others_expected_before_is_only_reported(api, other):
    saved = stored()
    assert [one["enforcedIn"] for one in api["viewer"].get(f"{URL}/{saved.pk}").json()["expectations"]] == [
        None
    ]
    assert api["owner"].post(other).status_code == 200
    found = api["owner"].post("/api/admin/playground/check-expectations", {"contexts": ["Bea"]}).json()
    assert (found["failed"], found["expectations"][0]["enforcedIn"]) == (1, None)


def test_an_editor_may_withdraw_what_no_project_enforces(api, other):
    saved = stored()
    assert api["editor"].put(f"{URL}/{saved.pk}", {"context": {}}).status_code == 200
    assert api["editor"].put(f"{URL}/{saved.pk}", {"expectations": []}).status_code == 200
    assert api["editor"].delete(f"{URL}/{saved.pk}").status_code == 204


def test_it_is_enforced_once_somebody_saves_it_who_may_say_it(api, other):
    saved = stored()
    assert (
        api["editor"].put(f"{URL}/{saved.pk}", {"note": "x"}).json()["expectations"][0]["enforcedIn"] is None
    )
    shown = api["admin"].put(f"{URL}/{saved.pk}", {"note": "y"}).json()
    assert shown["expectations"][0]["enforcedIn"] == "shop"
    refused(api["owner"].post(other), 409, "BrokenExpectationsError")


def test_it_stays_enforced_where_it_was_stated(api, other):
    """Also while the flag is in another project, and its context is saved there."""
    made = api["admin"].post(URL, body(expected("other"))).json()
    make_project("docs")
    move = f"{other.split('/environments')[0]}/changeProject?ignoreExpectations=true"
    assert api["admin"].post(move, {"newProjectId": "docs"}).status_code == 200
    shown = api["admin"].put(f"{URL}/{made['id']}", {"note": "x"}).json()
    assert shown["expectations"][0]["enforcedIn"] == "shop"
    environments.disable_flag("docs", "other", "production", caller=WHO)


def test_an_import_says_it_as_its_caller_would(api, other):
    """Expectations of flags of other projects need the permission there."""
    live_flag("page", "default")
    data = {
        "featureEnvironments": [import_bodies.switch("page", True)],
        "savedContexts": [body({"flag": "other", "enabled": True})],
    }
    sent = import_bodies.body("page", project="default", environment="production", **data)
    record = refused(api["editor"].post(IMPORT, sent), 400, "ValidationError")
    assert record["details"][0]["path"] == "data.savedContexts[0].expectations"
    assert api["admin"].post(IMPORT, sent).status_code == 200
    assert SavedContext.objects.get(name="Bea").enforced_in == {"other": "shop"}


def test_undoing_an_import_undoes_who_enforces(api, other):
    saved = stored()
    data = {
        "featureEnvironments": [import_bodies.switch("other", True)],
        "savedContexts": [body({"flag": "other", "enabled": True}, note="x")],
    }
    sent = import_bodies.body("other", project="shop", environment="production", **data)
    assert api["admin"].post(IMPORT, sent).status_code == 200
    saved.refresh_from_db()
    assert saved.enforced_in == {"other": "shop"}
    undo_import(ImportRun.objects.get().pk, caller=WHO)
    saved.refresh_from_db()
    assert (saved.enforced_in, saved.note) == ({}, "")


def test_the_pages_say_what_is_only_reported(browse, cart):
    saved = stored()
    for url in (f"/playground/contexts/{saved.pk}/", "/playground/expectations/"):
        assert "nobody: reported only" in page_text(browse("viewer").get(url))
    assert "project shop" in page_text(browse("viewer").get("/playground/expectations/"))


def test_the_form_refuses_in_the_same_words(browse, cart):
    form = {"name": "Carl", "context": "{}", "expectations-flag": "other", "expectations-variant": ""}
    form |= {"expectations-environment": "production", "expectations-enabled": "on"}
    page = browse("editor").post("/playground/contexts/new", form)
    assert page.status_code == 403
    assert "in Shop to change what is expected of its flags" in page_text(page)


def test_the_summary_of_a_draft_names_projects_that_would_refuse(cart):
    """Not for what is only reported."""
    stored()
    assert refusing("other") == []
    assert refusing("cart") == ["Shop"]


def refusing(flag: str) -> list[str]:
    edit = FlagEdit("shop", flag, "production", Draft(flag, {"enabled": False}))
    return list(EffectsView(predict_effects(WHO, [edit])).refused_by)


def test_expectations_stored_before_are_enforced_if_their_author_may_state_them(cart, people):
    """By an upgrade, which knows who saved a context last."""
    live_flag("page", "default")
    both = [expected("other"), expected("page"), expected("gone")]
    for author in ("admin", "editor", "member", "viewer", "nobody", ""):
        stored(name=f"of {author}", expectations=both, updated_by=author)
    made_group = make_group("Shop people", people["outsider"])
    Grant.objects.create(role_id=BuiltIn.OWNER, project_id="shop", group=made_group)
    stored(name="of outsider", expectations=both, updated_by="outsider")
    sql = import_module("playground.migrations.0006_enforce_what_is_expected").SQL
    with connection.cursor() as cursor:
        cursor.execute(sql)
    found = dict(SavedContext.objects.filter(project=None).values_list("name", "enforced_in"))
    shop, page = {"other": "shop"}, {"page": "default"}
    assert found == {
        "of admin": shop | page, "of editor": page, "of member": shop, "of outsider": shop,
        "of viewer": {}, "of nobody": {}, "of ": {},
    }  # fmt: skip
