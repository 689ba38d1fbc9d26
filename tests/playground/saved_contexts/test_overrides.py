"""Changes that break an expectation, through every door: who is told what, and who may make them anyway."""

import json

import pytest
from django.core.management import CommandError, call_command

from flagadmin.core.audit.models import AuditEvent
from groups.models import Grant, Role
from groups.permissions import Permission
from importer.models import ImportRun
from projects.models import Flag
from tests.playground.saved_contexts.guarded import FEATURES, NOBODY, OFF, cart, failing, strategy
from tests.support import import_bodies
from tests.support.admin_forms import site
from tests.support.for_each import for_each
from tests.support.records import events, refused

__all__ = ["cart", "site"]


def overridden() -> list[tuple[str, str, str, str]]:
    found = events("expectation-overridden")
    return [(each.actor_name, each.environment, each.feature, each.subject) for each in found]


@pytest.mark.django_db(transaction=True)
def test_the_api_names_what_would_break(cart, api):
    record = refused(api["member"].post(OFF), 409, "BrokenExpectationsError")
    assert "breaks 2 expectations" in record["message"]
    first = record["details"][0]
    assert first["path"] == "Ada"
    assert first["message"].startswith(
        "cart: on, variant blue → off in production, expected on, variant blue."
    )
    assert record["expectations"][0]["before"]["results"] == [
        {"isEnabled": True, "variant": "blue", "payload": None, "share": 1.0}
    ]
    assert record["expectations"][0]["after"]["reason"]
    assert not failing()
    assert not AuditEvent.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_an_emergency(cart, api):
    """Whoever may turn the flag off there may break the expectation; the audit log says so."""
    assert api["member"].post(f"{OFF}?ignoreExpectations=true").status_code == 200
    assert failing() == ["cart", "child"]
    assert overridden() == [
        ("member", "production", "cart", "Ada"),
        ("member", "production", "child", "Ada"),
    ]
    [off, *_] = events("feature-environment-disabled")
    [said, *_] = events("expectation-overridden")
    assert (said.request_id, said.before, said.after) == (
        off.request_id,
        {"result": "on, variant blue"},
        {"result": "off"},
    )


@pytest.mark.django_db(transaction=True)
def test_who_may_not_override(cart, api, people):
    """Viewers may not change at all; those who may change strategies, but not turn flags off, may not override."""
    refused(api["reader"].post(f"{OFF}?ignoreExpectations=true"), 403, "NoAccessError")
    role = Role.objects.create(name="Strategist", type="project")
    role.permissions.create(permission=Permission.UPDATE_FEATURE_STRATEGY, environment_id="production")
    Grant.objects.create(role=role, project_id="shop", user=people["outsider"])
    url = f"{FEATURES}/cart/environments/production/strategies/{strategy()}"
    body = {"name": "default", "constraints": NOBODY}
    refused(api["outsider"].put(url, body), 409, "BrokenExpectationsError")
    record = refused(api["outsider"].put(f"{url}?ignoreExpectations=true", body), 403, "NoAccessError")
    assert record["permissions"] == ["UPDATE_FEATURE_ENVIRONMENT"]
    assert not failing()
    assert not AuditEvent.objects.exists()


@for_each("given", ["yes", "TRUE", "2"])
def test_an_odd_override(cart, api, given):
    refused(api["member"].post(f"{OFF}?ignoreExpectations={given}"), 400, "ValidationError")


def test_an_override_that_nothing_needs_says_nothing(cart, api):
    url = f"{FEATURES}/other/environments/production/off?ignoreExpectations=true"
    assert api["member"].post(url).status_code == 200
    assert overridden() == []


@pytest.mark.django_db(transaction=True)
def test_the_import_api(cart, api):
    url = "/api/admin/features-batch/import"
    data = {"featureEnvironments": [import_bodies.switch("cart", enabled=False)]}
    body = import_bodies.body("cart", environment="production", **data)
    refused(api["admin"].post(url, body), 409, "BrokenExpectationsError")
    assert not ImportRun.objects.exists()
    assert api["admin"].post(f"{url}?ignoreExpectations=1", body).status_code == 200
    assert {who for who, *_ in overridden()} == {"admin"}


@pytest.mark.django_db(transaction=True)
def test_the_command(cart, tmp_path, capsys):
    data = {"featureEnvironments": [import_bodies.switch("cart", enabled=False)]}
    file = tmp_path / "export.json"
    file.write_text(json.dumps(import_bodies.body("cart", environment="production", **data)))
    with pytest.raises(CommandError, match="--ignore-expectations") as refusal:
        call_command("import_flags", str(file))
    assert refusal.value.returncode == 2
    call_command("import_flags", str(file), "--ignore-expectations")
    assert {who for who, *_ in overridden()} == {"flagadmin"}


@pytest.mark.django_db(transaction=True)
def test_the_console_asks_whether_to_save_anyway(cart, browse):
    """The page has the form with all that was entered, and saves it anyway."""
    member, url = browse("member"), "/projects/shop/features/cart/switch"
    form = {"environment": "production", "enabled": "off", "confirmed": "yes", "next": "/projects/shop/"}
    page = member.post(url, form)
    text = page.content.decode()
    assert page.status_code == 409
    assert "Ada</b>: cart: on, variant blue → off in production" in text
    assert not failing()
    assert dict(page.context["kept"]) == form
    by_script = member.post(url, form, headers={"HX-Request": "true"})
    assert (by_script["HX-Retarget"], by_script["HX-Reselect"]) == ("#main", "#main")
    done = member.post(url, {**form, "ignore_expectations": "yes"})
    assert done["Location"] == "/projects/shop/"
    assert {who for who, *_ in overridden()} == {"member"}


@pytest.mark.django_db(transaction=True)
def test_a_previewed_import_asks_too_and_stays_pending(cart, browse):
    data = {"featureEnvironments": [import_bodies.switch("cart", enabled=False)]}
    document = json.dumps(import_bodies.body("cart", environment="production", **data))
    admin = browse("admin")
    sent = {"text": document, "project": "shop", "environment": "production"}
    url = admin.post("/import/", sent)["Location"]
    form = {"do": "confirm", "fingerprint": ImportRun.objects.get().fingerprint}
    page = admin.post(url, form)
    assert page.status_code == 409
    assert dict(page.context["kept"]) == form
    assert ImportRun.objects.get().state == ImportRun.State.PENDING
    assert not failing()
    admin.post(url, {**form, "ignore_expectations": "yes"})
    assert ImportRun.objects.get().state == ImportRun.State.DONE
    assert {who for who, *_ in overridden()} == {"admin"}


@pytest.mark.django_db(transaction=True)
def test_the_admin_site_asks_too(cart, site):
    url = "/admin/projects/flag/"
    form = {"action": "archive", "_selected_action": [Flag.objects.get(name="child").pk]}
    page = site.post(url, form)
    assert page.status_code == 409
    assert b"Save anyway" in page.content
    assert not failing()
    assert site.post(url, {**form, "ignore_expectations": "yes"}).status_code == 302
    assert {who for who, *_ in overridden()} == {"admin"}


def test_the_setting(shop, api, browse):
    url = "/api/admin/projects/shop"
    assert api["owner"].put(url, {"refuseBrokenExpectations": True}).status_code == 200
    assert api["viewer"].get(url).json()["refuseBrokenExpectations"] is True
    [event] = events("project-updated")
    assert (event.before["refuseBrokenExpectations"], event.after["refuseBrokenExpectations"]) == (
        False,
        True,
    )
    assert (
        b"Refuse changes that break an expectation" in browse("owner").get("/projects/shop/settings/").content
    )
    refused(api["member"].put(url, {"refuseBrokenExpectations": False}), 403, "NoAccessError")
