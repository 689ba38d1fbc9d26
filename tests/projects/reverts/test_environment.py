"""Setting an environment back to a moment: all flags there get the switch, strategies and variants of then."""

import html
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.edit_conflicts import hash_document
from flagadmin.core.errors import EditConflict
from flagadmin.core.http.responses import iso
from groups.access import Caller
from groups.models import Grant
from groups.permissions import BuiltIn
from projects.flags.actions import NewFlag, create_flag
from projects.flags.archive.actions import archive_flags, delete_flags
from projects.flags.dependencies.actions import add_dependency
from projects.flags.environments.actions import disable_flag, enable_flag, set_variants
from projects.models import Flag, FlagEnvironment, Project, ProjectEnvironment, Strategy
from projects.models.versions import VersionsSince
from projects.reverts import actions, environment_plan
from projects.reverts.actions import revert_environment
from projects.reverts.environment_plan import plan_environment
from projects.reverts.parts import restore_parts
from projects.segments.actions import create_segment, update_segment
from projects.strategies.actions import add_strategy, update_strategy
from releases.models import ChangeRequest
from tests.support.cast import make_project
from tests.support.page_text import page_text
from tests.support.plans import started
from tests.support.playground import live_flag
from tests.support.racing import BEFORE_COMMIT, BEFORE_LOCK, race

pytestmark = pytest.mark.django_db
URL = "/api/admin/environments/production/revert"
PAGE = "/environments/production/revert"
WHO = Caller.system()
HALF = {"rollout": "50", "stickiness": "userId", "groupId": "cart"}


def moment() -> datetime:
    """Now, by the database: after all that was done."""
    return AuditEvent.objects.latest("created_at").created_at


@pytest.fixture
def then(shop: Project) -> datetime:
    """cart is on for half of the users, and hat, of another project, is off."""
    make_project("other")
    for project, name in (("shop", "cart"), ("other", "hat")):
        create_flag(project, NewFlag(name=name), caller=WHO)
        strategy = {"name": "flexibleRollout", "parameters": HALF}
        add_strategy(project, name, "production", strategy, caller=WHO)
    enable_flag("shop", "cart", "production", caller=WHO)
    return moment()


def change_all() -> None:
    [strategy] = Strategy.objects.filter(flag__name="cart")
    everyone = {"parameters": HALF | {"rollout": "100"}}
    update_strategy("shop", "cart", "production", str(strategy.pk), everyone, caller=WHO)
    add_strategy("shop", "cart", "production", {"name": "default"}, caller=WHO)
    enable_flag("shop", "cart", "development", caller=WHO)
    enable_flag("other", "hat", "production", caller=WHO)


def stored() -> Any:
    strategies = Strategy.objects.filter(environment="production").order_by("pk")
    return set(
        FlagEnvironment.objects.filter(enabled=True).values_list("flag__name", "environment_id")
    ), list(strategies.values_list("pk", "parameters", "disabled"))


def send(by: Any, at: datetime, **more: Any) -> Any:
    headers = more.pop("headers", None)
    return by.post(URL, {"at": iso(at), **more}, format="json", headers=headers)


def test_every_flag_there_gets_what_it_had(api: Any, then: datetime) -> None:
    before = stored()
    change_all()
    asked = api["admin"].get(URL, {"at": iso(then)})
    preview = asked.json()
    assert [(row["feature"], row["project"]) for row in preview["features"]] == [
        ("hat", "other"),
        ("cart", "shop"),
    ]
    assert any("50" in change for change in preview["features"][1]["changes"])
    assert preview["keptOut"] == []
    done = send(api["admin"], then, headers={"If-Match": asked["ETag"]})
    assert (done.status_code, done.json()) == (200, preview)
    enabled, strategies = stored()
    assert enabled == before[0] | {("cart", "development")}
    assert strategies == before[1]
    events = AuditEvent.objects.order_by("-pk")[:2]
    assert {event.feature for event in events} == {"cart", "hat"}
    assert {event.type for event in events} == {"feature-reverted"}
    assert len({(event.created_at, event.request_id) for event in events}) == 1
    assert send(api["admin"], then).json()["features"] == []


def test_what_cannot_be_set_back_stays_and_is_named(api: Any, then: datetime) -> None:
    segment = create_segment({"name": "pro", "constraints": []}, caller=WHO)
    for name in ("old", "gone", "mild"):
        live_flag(name)
    add_strategy("shop", "mild", "production", {"name": "default", "segments": [segment.pk]}, caller=WHO)
    at = moment()
    change_all()
    create_flag("shop", NewFlag(name="new"), caller=WHO)
    enable_flag("shop", "new", "production", caller=WHO)
    archive_flags("shop", ["old", "gone"], caller=WHO)
    delete_flags("shop", ["gone"], caller=WHO)
    constraints = [{"contextName": "plan", "operator": "IN", "values": ["pro"]}]
    update_segment(segment.pk, {"constraints": constraints}, caller=WHO)
    add_dependency("shop", "mild", {"feature": "new"}, caller=WHO)
    done = send(api["admin"], at).json()
    assert [row["feature"] for row in done["features"]] == ["hat", "cart", "new"]
    assert {row["feature"]: row["reason"] for row in done["keptOut"]} == {
        "old": "has been archived since",
        "gone": "has been deleted or moved since",
    }
    assert done["segments"] == ["pro"]
    new = Flag.objects.get(name="new")
    assert not FlagEnvironment.objects.get(flag=new, environment="production").enabled
    assert Strategy.objects.filter(flag=new).exists()
    assert Flag.objects.get(name="mild").parents.exists()


def test_projects_and_flags_can_be_chosen(api: Any, then: datetime) -> None:
    change_all()
    changed = stored()
    refused = send(api["admin"], then, features=["cart", "nothing"])
    assert refused.status_code == 400
    assert refused.json()["details"][0]["message"].startswith("nothing has not changed in production since")
    assert send(api["admin"], then, projects=["nowhere"]).status_code == 400
    assert stored() == changed
    assert [row["feature"] for row in send(api["admin"], then, projects=["other"]).json()["features"]] == [
        "hat"
    ]
    assert [row["feature"] for row in send(api["admin"], then, features=["cart"]).json()["features"]] == [
        "cart"
    ]


def test_only_the_projects_that_one_may_change(api: Any, browse: Any, people: Any, then: datetime) -> None:
    change_all()
    changed = stored()
    for who in ("viewer", "reader", "outsider"):
        assert api[who].get(URL, {"at": iso(then)}).status_code == 403
        assert send(api[who], then).status_code == 403
        assert browse(who).get(PAGE, {"at": iso(then)}).status_code == 403
    assert stored() == changed
    assert [row["feature"] for row in send(api["member"], then).json()["features"]] == ["cart"]
    assert ("hat", "production") in stored()[0]
    Grant.objects.create(user=people["member"], project_id="other", role_id=BuiltIn.MEMBER)
    assert [row["feature"] for row in send(api["member"], then).json()["features"]] == ["hat"]


def test_segments_of_flags_that_now_have_the_names_elsewhere_stay_hidden(api: Any, shop: Project) -> None:
    make_project("other")
    live_flag("cart")
    secret = create_segment({"name": "secret", "constraints": [], "project_id": "other"}, caller=WHO)
    at = moment()
    archive_flags("shop", ["cart"], caller=WHO)
    delete_flags("shop", ["cart"], caller=WHO)
    create_flag("other", NewFlag(name="cart"), caller=WHO)
    add_strategy("other", "cart", "production", {"name": "default", "segments": [secret.pk]}, caller=WHO)
    only = {"contextName": "plan", "operator": "IN", "values": ["pro"]}
    update_segment(secret.pk, {"constraints": [only]}, caller=WHO)
    seen = api["member"].get(URL, {"at": iso(at)}).json()
    assert [row["feature"] for row in seen["keptOut"]] == ["cart"]
    assert seen["segments"] == []


def test_moments_that_are_unknown_or_ahead(api: Any, then: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    change_all()
    assert send(api["admin"], timezone.now() + timedelta(days=1)).status_code == 400
    assert api["admin"].get(URL).status_code == 400
    assert api["admin"].get(URL.replace("production", "nowhere"), {"at": iso(then)}).status_code == 404
    monkeypatch.setattr(environment_plan, "MAX_FLAGS", 1)
    assert "2 flags differ from then; at most" in send(api["admin"], then).json()["message"]
    monkeypatch.setattr(environment_plan, "MAX_CHANGED", 1)
    assert "flags have changed since then; at most" in send(api["admin"], then).json()["message"]
    VersionsSince.objects.create(since=timezone.now(), kept_since=timezone.now())
    assert send(api["admin"], then).status_code == 409


def test_variants_and_a_release_plan(api: Any, browse: Any, then: datetime) -> None:
    blue = [
        {"name": "blue", "weight": 1000, "weightType": "variable", "stickiness": "default", "payload": None}
    ]
    set_variants("shop", "cart", "production", blue, caller=WHO)
    at = moment()
    set_variants("shop", "cart", "production", [], caller=WHO)
    started(50, 100)
    assert "its next step, 100 %, replaces this" in page_text(browse("member").get(PAGE, {"at": iso(at)}))
    send(api["member"], at)
    assert (
        FlagEnvironment.objects.get(flag__name="cart", environment="production").variants[0]["name"] == "blue"
    )


@pytest.mark.django_db(transaction=True)
def test_a_guarded_project_refuses_it_as_a_whole(api: Any, then: datetime) -> None:
    change_all()
    ProjectEnvironment.objects.filter(project="shop", environment="production").update(required_approvals=1)
    changed, events = stored(), AuditEvent.objects.count()
    refused = send(api["member"], then)
    assert refused.status_code == 403
    assert "production in project shop need a change request" in refused.json()["message"]
    assert (stored(), AuditEvent.objects.count()) == (changed, events)


@pytest.mark.django_db(transaction=True)
def test_one_change_request_for_a_guarded_project(browse: Any, then: datetime) -> None:
    live_flag("gift", enabled=False)
    at = moment()
    change_all()
    enable_flag("shop", "gift", "production", caller=WHO)
    ProjectEnvironment.objects.filter(project="shop", environment="production").update(required_approvals=1)
    changed = stored()
    admin = browse("admin")
    page = admin.get(PAGE, {"at": iso(at)})
    assert "2 flags of shop need a change request" in page_text(page)
    assert re.findall(r'name="flag" value="(\w+)"', page.text) == ["hat"]
    [link] = re.findall(r'href="(\?at=[^"]*project=shop)"', page.text)
    page = admin.get(PAGE + link.replace("&amp;", "&"))
    assert re.findall(r'name="flag" value="(\w+)"', page.text) == ["cart", "gift"]
    assert "Send for review" in page_text(page)
    sent = admin.post(PAGE, fields(page) | {"send_for_review": "yes"})
    assert sent.status_code == 302, page_text(sent)
    request = ChangeRequest.objects.get()
    assert sent.url == f"/projects/shop/change-requests/{request.pk}/"
    assert set(request.changes.values_list("feature", flat=True)) == {"cart", "gift"}
    assert stored() == changed


def fields(page: Any) -> dict[str, Any]:
    """What its form sends."""
    form = page.text.partition('id="confirm"')[2].partition("</form>")[0]
    sent: dict[str, Any] = {}
    for name, value in re.findall(r'<input type="(?:hidden|checkbox)" name="([\w-]+)" value="([^"]*)"', form):
        sent.setdefault(name, []).append(value)
    return sent


def test_the_page_leaves_out_flags_and_says_who_changes(browse: Any, then: datetime) -> None:
    change_all()
    admin = browse("admin")
    page = admin.get(PAGE, {"at": iso(then), "next": "/flags/"})
    assert "Set production back" in page_text(page)
    assert 'hx-post="/if-saved/environments/production/revert?at=' in page.text
    sent = fields(page)
    assert sent["flag"] == ["hat", "cart"]
    kept = sent | {"flag": ["hat"]}
    chosen = admin.get(PAGE, {"at": iso(then), "shown": "1", "flag": "hat"})
    assert '"features"' in html.unescape(chosen.text)
    assert '"features"' not in html.unescape(page.text)
    who = admin.post(f"/if-saved{PAGE}", kept, headers={"HX-Request": "true"})
    assert "10,000" in page_text(who)
    done = admin.post(PAGE, kept, follow=True)
    assert done.redirect_chain[0][0] == "/flags/"
    assert "Set 1 flag of production back to" in page_text(done)
    assert stored()[0] == {("cart", "production"), ("cart", "development")}
    undo = re.search(r'action="(/activity/\d+/revert)"', done.text)
    assert undo
    admin.post(undo[1], {"do": "undo", "next": "/flags/"})
    assert ("hat", "production") in stored()[0]


def test_the_page_lists_anew_what_has_changed_meanwhile(browse: Any, then: datetime) -> None:
    change_all()
    admin = browse("admin")
    sent = fields(admin.get(PAGE, {"at": iso(then)}))
    disable_flag("shop", "cart", "production", caller=WHO)
    changed = stored()
    refused = admin.post(PAGE, sent)
    assert refused.status_code == 409
    assert stored() == changed
    assert admin.post(PAGE, fields(refused)).status_code == 302


def test_nothing_to_set_back(browse: Any, then: datetime) -> None:
    assert "Nothing to set back" in page_text(browse("member").get(PAGE, {"at": iso(then)}))
    assert browse("member").get(PAGE).status_code == 400


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("stop", [BEFORE_LOCK, BEFORE_COMMIT])
def test_a_change_at_the_same_time_is_seen_or_waits(then: datetime, stop: str) -> None:
    change_all()
    expected = frozenset([hash_document(plan_environment("production", then, caller=WHO).document)])

    def set_back() -> str:
        try:
            revert_environment("production", then, expected=expected, caller=WHO)
        except EditConflict:
            return "refused"
        return "done"

    def disable() -> str:
        disable_flag("shop", "cart", "production", caller=WHO)
        return "disabled"

    assert race(set_back, disable, stop=stop) == ("refused" if stop == BEFORE_LOCK else "done", "disabled")
    is_on = ("hat", "production") in stored()[0]
    assert is_on == (stop == BEFORE_LOCK)
    assert ("cart", "production") not in stored()[0]


@pytest.mark.django_db(transaction=True)
def test_a_failure_in_the_middle_leaves_nothing(then: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    change_all()
    changed, events = stored(), AuditEvent.objects.count()

    written = []

    def fail(*args: Any) -> Any:
        written.append(restore_parts(*args))
        if len(written) == 2:
            raise RuntimeError
        return written[-1]

    with monkeypatch.context() as patched:
        patched.setattr(actions, "restore_parts", fail)
        with pytest.raises(RuntimeError):
            revert_environment("production", then, caller=WHO)
    assert len(written) == 2
    assert (stored(), AuditEvent.objects.count()) == (changed, events)
