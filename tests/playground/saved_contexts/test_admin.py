"""Saved contexts and evaluated files of users on the admin site."""

import json

from django.utils import timezone

from playground.models import SavedContext, UserRun
from tests.support.admin_forms import errors_of, saved, send, site
from tests.support.playground import live_flag
from tests.support.records import events

__all__ = ["site"]

ADD = "/admin/playground/savedcontext/add/"
EXPECTED = {"flag": "cart", "environment": "production", "enabled": True, "variant": None}


def change_url(context: SavedContext) -> str:
    return f"/admin/playground/savedcontext/{context.pk}/change/"


def test_created_changed_and_deleted_through_the_actions(site, shop):
    live_flag("cart")
    given = {"name": "Ada", "project": "shop", "context": '{"userId": "42"}', "note": "Pays"}
    saved(send(site, ADD, **given, expectations=json.dumps([EXPECTED])))
    ada = SavedContext.objects.get()
    assert (ada.project_id, ada.context, ada.note, ada.expectations, ada.created_by) == (
        "shop",
        {"userId": "42"},
        "Pays",
        [EXPECTED],
        "admin",
    )
    saved(send(site, change_url(ada), note=""))
    site.post(f"/admin/playground/savedcontext/{ada.pk}/delete/", {"post": "yes"})
    assert not SavedContext.objects.exists()
    kinds = ["saved-context-created", "saved-context-updated", "saved-context-deleted"]
    assert [event.type for event in events(*kinds)] == kinds


def test_the_rules_hold_here_too(site, shop):
    unknown = json.dumps([EXPECTED])
    assert "flag cart not found" in str(errors_of(send(site, ADD, name="Ada", expectations=unknown)))
    odd = json.dumps([{"flag": "cart"}])
    assert "expectations[0].enabled" in str(errors_of(send(site, ADD, name="Ada", expectations=odd)))
    assert "context" in str(errors_of(send(site, ADD, name="Ada", context="5")))
    assert not SavedContext.objects.exists()


def test_what_is_stored_may_name_what_has_gone(site, shop):
    ada = SavedContext.objects.create(name="Ada", expectations=[EXPECTED])
    saved(send(site, change_url(ada), note="New"))
    ada.refresh_from_db()
    assert (ada.note, ada.expectations) == ("New", [EXPECTED])


def test_runs_are_shown_and_not_changed(site):
    run = UserRun.objects.create(
        caller_name="ada", environment="production", created_at=timezone.now(), body=b"secret"
    )
    page = site.get(f"/admin/playground/userrun/{run.pk}/change/")
    assert page.status_code == 200
    assert "secret" not in page.text
    assert site.get("/admin/playground/userrun/").status_code == 200
    assert site.get("/admin/playground/userrun/add/").status_code == 403
    assert site.post(f"/admin/playground/userrun/{run.pk}/delete/", {"post": "yes"}).status_code == 403
