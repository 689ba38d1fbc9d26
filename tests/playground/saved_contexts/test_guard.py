"""Projects that refuse changes that break an expectation: every kind of change, through every door."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from flagadmin.audit.models import AuditEvent
from flagadmin.change_checks import BrokenExpectations
from groups.access import Caller
from groups.models import Grant, Role
from groups.permissions import Permission
from importer.apply.execute import import_body
from importer.apply.undo import undo_import
from importer.body.schemas import read_body
from importer.models import ImportRun
from playground.models import SavedContext
from playground.saved_contexts import changed
from playground.saved_contexts.expectations import check_expectations, expectations_of
from projects.flags import archive, dependencies, environments, move
from projects.flags.actions import update_flag
from projects.flags.revert import revert_flag
from projects.flags.revert_plan import Target
from projects.models import Flag, Project, Segment, Strategy
from projects.segments.actions import update_segment
from projects.strategies import actions as strategies
from tests.support import import_bodies
from tests.support.admin_forms import site
from tests.support.cast import make_project
from tests.support.flags import depend
from tests.support.playground import live_flag
from tests.support.racing import BEFORE_COMMIT, race
from tests.support.random_changes import NAMES, RandomChanges
from tests.support.records import events, refused

__all__ = ["site"]
WHO = Caller.system()
PLACE = ("shop", "cart", "production")
FEATURES = "/api/admin/projects/shop/features"
OFF = f"{FEATURES}/cart/environments/production/off"
NOBODY = [{"contextName": "userId", "operator": "IN", "values": ["7"]}]
BLUE, GREEN = ([{"name": name, "weight": 1000, "weightType": "variable"}] for name in ("blue", "green"))


def expected(flag: str = "cart", enabled: bool = True, variant: str | None = None) -> dict[str, Any]:
    return {"flag": flag, "environment": "production", "enabled": enabled, "variant": variant}


def persona(*expectations: dict[str, Any], name: str = "Ada", project: str | None = "shop") -> SavedContext:
    return SavedContext.objects.create(
        name=name, project_id=project, context={"userId": "42"}, expectations=list(expectations)
    )


@pytest.fixture
def cart(shop: Any) -> Flag:
    """On for everybody through a segment, as Ada expects it; `child` depends on it. The project refuses changes."""
    shop.refuse_broken_expectations = True
    shop.save()
    everybody = Segment.objects.create(name="everybody", constraints=[])
    flag = live_flag("cart", strategies=[{"name": "default", "segments": [everybody]}], variants=BLUE)
    depend(live_flag("child"), flag)
    live_flag("other")
    persona(expected(variant="blue"), expected("child"), expected("off", enabled=False))
    return flag


def strategy() -> str:
    return str(Strategy.objects.filter(flag__name="cart").order_by("sort_order")[0].pk)


def an_import(enabled: bool = False) -> Any:
    data = {
        "featureStrategies": [import_bodies.strategy("cart", name="default")],
        "featureEnvironments": [import_bodies.switch("cart", enabled=enabled, variants=BLUE)],
    }
    return read_body(import_bodies.body("cart", environment="production", **data))


def reorder() -> None:
    """The first strategy says which variant it is."""
    second = strategies.add_strategy(*PLACE, {"name": "default", "variants": GREEN}, caller=WHO)
    strategies.order_strategies(*PLACE, [(second["id"], 0), (strategy(), 1)], caller=WHO)


BREAKING: dict[str, Callable[[], Any]] = {
    "off": lambda: environments.disable_flag(*PLACE, caller=WHO),
    "off in bulk": lambda: environments.disable_flags("shop", ["other", "cart"], "production", caller=WHO),
    "variants": lambda: environments.set_variants(*PLACE, GREEN, caller=WHO),
    "strategy changed": lambda: strategies.update_strategy(
        *PLACE, strategy(), {"constraints": NOBODY}, caller=WHO
    ),
    "strategy removed": lambda: strategies.remove_strategy(*PLACE, strategy(), caller=WHO),
    "segment": lambda: update_segment(Segment.objects.get().pk, {"constraints": NOBODY}, caller=WHO),
    "parent off": lambda: environments.disable_flag("shop", "child", "production", caller=WHO),
    "dependency": lambda: dependencies.add_dependency(
        "shop", "child", {"feature": "cart", "enabled": False}, caller=WHO
    ),
    "archive": lambda: archive.archive_flags("shop", ["cart", "child"], caller=WHO),
    "import": lambda: import_body(an_import(), caller=WHO),
    "order": reorder,
}


@pytest.mark.parametrize("change", BREAKING.values(), ids=BREAKING.keys())
def test_every_kind_of_change_is_refused(cart, change):
    before = AuditEvent.objects.count()
    with pytest.raises(BrokenExpectations) as refusal, transaction.atomic():
        change()
    assert refusal.value.problems[0].path == "Ada"
    assert not failing()
    assert AuditEvent.objects.count() == before


def test_undoing_an_import(cart):
    SavedContext.objects.all().delete()
    environments.disable_flag(*PLACE, caller=WHO)
    run = import_body(an_import(enabled=True), caller=WHO)
    persona(expected())
    with pytest.raises(BrokenExpectations), transaction.atomic():
        undo_import(run.id, caller=WHO)
    assert not failing()


def test_reverting_a_flag(cart):
    SavedContext.objects.all().delete()
    environments.disable_flag(*PLACE, caller=WHO)
    off = AuditEvent.objects.latest("id")
    environments.enable_flag(*PLACE, caller=WHO)
    persona(expected())
    with pytest.raises(BrokenExpectations), transaction.atomic():
        revert_flag("shop", "cart", Target(off.created_at, off.pk), caller=WHO)
    assert not failing()


def test_whatever_keeps_expectations_is_saved(cart):
    strategies.add_strategy(*PLACE, {"name": "default"}, caller=WHO)
    environments.disable_flag("shop", "other", "production", caller=WHO)
    import_body(an_import(enabled=True), caller=WHO)
    make_project("docs")
    move.move_flag("shop", "other", "docs", caller=WHO)
    assert not failing()


def test_a_moved_flag_keeps_what_is_expected_of_it(cart):
    """What is expected is checked where the flag is then."""
    make_project("docs")
    persona(expected("other"), name="Bea", project=None)
    move.move_flag("shop", "other", "docs", caller=WHO)
    assert not failing()
    environments.disable_flag("docs", "other", "production", caller=WHO)
    assert failing() == ["other"]


def test_what_fails_already_does_not_block_and_can_be_mended(cart):
    persona(expected(variant="green"), expected("other", enabled=False), name="Bea", project=None)
    strategies.add_strategy("shop", "other", "production", {"name": "default"}, caller=WHO)
    assert failing() == ["cart", "other"]
    environments.disable_flag("shop", "other", "production", caller=WHO)
    assert failing() == ["cart"]


def test_other_projects_and_their_contexts_are_left_alone(cart):
    make_project("docs")
    live_flag("page", "docs")
    persona(expected("page"), name="Bea", project="docs")
    environments.disable_flag("docs", "page", "production", caller=WHO)
    assert failing() == ["page"]


def test_without_the_setting_nothing_is_read(cart):
    Project.objects.update(refuse_broken_expectations=False)
    with CaptureQueriesContext(connection) as queries:
        environments.disable_flag(*PLACE, caller=WHO)
    assert not [each for each in queries if "savedcontext" in each["sql"] or "projectrevision" in each["sql"]]


def test_only_what_differs_is_evaluated(cart, monkeypatch):
    """A change that evaluates nothing differently costs the reading of what was."""
    monkeypatch.setattr(changed, "checked", None)
    update_flag("shop", "cart", {"description": "New"}, caller=WHO)
    environments.disable_flag("shop", "other", "production", caller=WHO)
    with pytest.raises(TypeError), transaction.atomic():
        environments.disable_flag(*PLACE, caller=WHO)


@pytest.mark.parametrize("seed", range(2))
def test_random_changes_break_nothing(shop, seed):
    """Whatever is changed, by whichever action, all expectations of the project stay met, or nothing is written."""
    make_project("docs")
    changes = RandomChanges(seed)
    for _ in range(30):
        changes.step()
    Project.objects.update(refuse_broken_expectations=True)
    wishes = [(name, where) for name in NAMES for where in ("development", "production")]
    saved = persona(*(expected(name) | {"environment": where} for name, where in wishes), project=None)
    met = [one.expectation for one in check_expectations(WHO, expectations_of(WHO)) if one.met]
    saved.expectations = [
        expected(name, enabled=any((one.flag, one.environment) == (name, where) for one in met))
        | {"environment": where}
        for name, where in wishes
    ]
    saved.save()
    refusals, known = 0, set(failing())
    for _ in range(30):
        before = AuditEvent.objects.count()
        try:
            changes.step()
        except BrokenExpectations:
            refusals += 1
            assert AuditEvent.objects.count() == before
        assert set(failing()) <= known, changes.done
        known = set(failing())
    assert refusals


# Through every door -------------------------------------------------------------------------------------------------


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
        {"isEnabled": True, "variant": "blue", "share": 1.0}
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


@pytest.mark.parametrize("given", ["yes", "TRUE", "2"])
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


@pytest.mark.django_db(transaction=True)
def test_two_changes_that_only_break_it_together(cart):
    """Ada gets the flag through either strategy. The second change waits for the first, and sees it."""
    SavedContext.objects.all().delete()
    persona(expected())
    second = strategies.add_strategy(*PLACE, {"name": "default"}, caller=WHO)["id"]
    first = strategy()

    def remove(one: str) -> Callable[[], Any]:
        return lambda: strategies.update_strategy(*PLACE, one, {"constraints": NOBODY}, caller=WHO)

    with pytest.raises(BrokenExpectations):
        race(remove(first), remove(second), stop=BEFORE_COMMIT)
    assert not failing()


@pytest.mark.django_db(transaction=True)
def test_a_segment_of_all_projects_and_a_strategy(cart):
    SavedContext.objects.all().delete()
    persona(expected())
    second = strategies.add_strategy(*PLACE, {"name": "default"}, caller=WHO)["id"]
    segment = Segment.objects.get().pk
    with pytest.raises(BrokenExpectations):
        race(
            lambda: strategies.update_strategy(*PLACE, second, {"constraints": NOBODY}, caller=WHO),
            lambda: update_segment(segment, {"constraints": NOBODY}, caller=WHO),
            stop=BEFORE_COMMIT,
        )
    assert not failing()


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


def failing() -> list[str]:
    found = check_expectations(WHO, expectations_of(WHO))
    return [one.expectation.flag for one in found if not one.met]
