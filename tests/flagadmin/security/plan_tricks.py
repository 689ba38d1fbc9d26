"""What somebody tries with release plans, safeguards, reverts, signals, agents and flags as code: as `tricks`."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from groups.models import Grant, Role, User
from groups.permissions import BuiltIn
from integrations.signals.receive import receive_signal
from projects.flags.environments.actions import disable_flag, enable_flag
from projects.models import Flag, Strategy
from releases.models import ReleasePlan, Safeguard
from releases.plans.actions import start_milestone
from releases.plans.add import Steps, add_steps
from releases.plans.due import look_at_due
from releases.plans.queries import FlagPath
from releases.safeguards.actions import note_alert, set_flag_safeguard
from releases.safeguards.serializers import FlagSafeguardBody
from tests.support.cast import make_user
from tests.support.editor_form import Form
from tests.support.mcp_client import call
from tests.support.playground import live_flag
from tests.support.signals import make_alert, make_body, make_rule, make_source

CART = FlagPath("shop", "cart", "production")
PLACE = "/api/admin/projects/shop/features/cart/environments/production"
PAGE = "/projects/shop/features/cart"
ALERT = {"impactMetric": {"metricName": "Down", "source": "alert"}}
EVERYBODY = {"name": "flexibleRollout", "parameters": {"rollout": "100"}}
STEPS = {"when": "steps", "rollouts": "60, 100", "interval": "60", "confirmed": "yes", "do": "save"}


def boss() -> Caller:
    return Caller(user=make_user("boss", root_role=BuiltIn.ADMIN))


def strategy() -> str:
    rows = Strategy.objects.filter(flag__name="cart", environment="production", name="flexibleRollout")
    return str(rows.get().pk)


def running_plan() -> ReleasePlan:
    """Approved, and at its second step of three, at which the flag is what it was before."""
    caller = boss()
    plan = add_steps(CART, strategy(), Steps({}, (5, 10, 60), {"intervalMinutes": 60}), caller=caller)
    skipping = caller.asking(skips_requests=True)
    return start_milestone(CART, plan.pk, plan.milestones.all()[1].pk, caller=skipping)


def url_of(plan: ReleasePlan, place: int | None = None) -> str:
    url = f"{PLACE}/release-plans/{plan.pk}"
    return url if place is None else f"{url}/milestones/{plan.milestones.all()[place].pk}"


def let_time_pass() -> None:
    """A month, and every plan and safeguard is looked at."""
    past = timezone.now() - timedelta(days=30)
    for _ in range(3):
        ReleasePlan.objects.exclude(since=None).update(since=past, look_at=past)
        Safeguard.objects.filter(plan=None).update(look_at=past)
        look_at_due()


def fire() -> None:
    let_time_pass()
    note_alert("Down", {}, fires=True, caller=Caller.system())
    let_time_pass()


def guard_plan(who: Any, action: str) -> None:
    body = ALERT | {"action": {"type": action}}
    who.put(f"{url_of(running_plan())}/safeguards", body)
    fire()


def hurry(who: Any) -> None:
    plan = running_plan()
    transition = {"transitionCondition": {"intervalMinutes": 1}}
    who.put(f"{PLACE}/progressions/{plan.active_id}", transition)
    let_time_pass()


def edit_milestone(who: Any, place: int) -> None:
    plan = running_plan()
    [step] = plan.milestones.all()[place].strategies
    answer = who.put(f"{url_of(plan, place)}/strategies/{step['id']}", EVERYBODY)
    if answer.status_code == 200:  # otherwise the plan is as it was approved, and goes on
        let_time_pass()


def pause_and_resume(who: Any) -> None:
    plan = running_plan()
    who.post(f"{PLACE}/progressions/{plan.pk}/pause")
    edited = {"transitionCondition": {"intervalMinutes": 1}}
    who.put(f"{PLACE}/progressions/{plan.active_id}", edited)
    who.post(f"{PLACE}/progressions/{plan.pk}/resume")
    let_time_pass()


def add_and_start(who: Any, body: Any) -> None:
    plan = who.post(f"{PLACE}/release-plans", body).json()
    who.post(f"{PLACE}/release-plans/{plan['id']}/milestones/{plan['milestones'][0]['id']}/start")
    let_time_pass()


def template(who: Any) -> dict[str, Any]:
    milestones = [{"name": "All", "strategies": [EVERYBODY]}]
    body = {"name": "Mine", "milestones": milestones}
    made = who.post("/api/admin/projects/shop/release-templates", body)
    return {"templateId": made.json().get("id", "")}


def start_while_off(who: Any) -> None:
    """The plan is started where nobody sees it, and goes on once the flag is on."""
    off = PLACE.replace("cart", "off-flag")
    steps = {"strategy": {"name": "flexibleRollout"}, "rollouts": [1, 100], "intervalMinutes": 1}
    plan = who.post(f"{off}/release-plans", {"steps": steps}).json()
    who.post(f"{off}/release-plans/{plan['id']}/milestones/{plan['milestones'][0]['id']}/start")
    who.post(f"{off}/on")
    let_time_pass()


def bring(who: Any, *, plan: bool) -> None:
    """A flag of one's own project, which is changed by itself in the guarded one once somebody has it turned on."""
    place, caller = FlagPath("open", "brought", "production"), boss()
    strategies = [{"name": "flexibleRollout", "parameters": {"rollout": "1", "stickiness": "default"}}]
    live_flag("brought", project="open", enabled=False, strategies=strategies)
    mallory, role = User.objects.get(username="mallory"), Role.objects.get(name="everything else")
    Grant.objects.create(user=mallory, role=role, project_id="open")
    if plan:
        steps = add_steps(place, "", Steps(EVERYBODY, (1, 100), {"intervalMinutes": 1}), caller=caller)
        start_milestone(place, steps.pk, steps.milestones.all()[0].pk, caller=caller)
    else:
        body = FlagSafeguardBody(data=ALERT)
        body.is_valid(raise_exception=True)
        set_flag_safeguard(place, body.validated_data, caller=caller)
    url = "/api/admin/projects/open/features/brought/changeProject"
    refused = who.post(url, {"newProjectId": "shop"})
    assert "brings a release plan or safeguards" in refused.json()["message"]
    assert Flag.objects.get(name="brought").project_id == "open"


def save_in_steps(browser: Any, **more: str) -> None:
    address = f"{PAGE}/strategies/edit?environmentId=production&strategyId={strategy()}"
    sent = Form(browser.get(address).content.decode()).sent
    browser.post(address, sent | {"p-rollout": "100"} | STEPS | more)
    let_time_pass()


def guard_flag(who: Any) -> None:
    who.put(f"{PLACE}/safeguards", ALERT)
    fire()


def guard_flag_by_page(browser: Any) -> None:
    form = {"source": "alert", "metric": "Down"}
    browser.post(f"{PAGE}/environments/production/safeguards/", form)
    browser.post(f"{PAGE}/environments/production/safeguards/", form | {"skip_change_request": "yes"})
    fire()


def revert_turning_on(who: Any) -> None:
    caller = boss().asking(skips_requests=True)
    disable_flag(*CART, caller=caller)
    enable_flag(*CART, caller=caller)
    event = AuditEvent.objects.filter(type="feature-environment-enabled").latest("pk")
    who.post(f"/api/admin/events/{event.pk}/revert", {})
    who.post(f"/api/admin/events/{event.pk}/revert", {"feature": "cart"})


def as_code(who: Any, **more: Any) -> None:
    entry = {"name": "cart", "environments": {"production": {"enabled": False, "strategies": []}}}
    body = {"flags": [{"project": "shop", "flag": entry}], **more}
    who.post("/api/admin/flags-as-code/apply", body)


def signal(who: Any) -> None:
    source = make_source()
    make_rule(source, author=User.objects.get(username="mallory"))
    receive_signal(source, make_body(make_alert()))


PLAN_TRICKS: dict[str, Any] = {
    "a safeguard that steps an approved plan back": lambda c, b: guard_plan(c, "stepBack"),
    "a safeguard that turns off by an approved plan": lambda c, b: guard_plan(c, "turnOff"),
    "a safeguard of the flag": lambda c, b: guard_flag(c),
    "a safeguard of the flag by its page": lambda c, b: guard_flag_by_page(b),
    "have an approved plan go on sooner": lambda c, b: hurry(c),
    "edit a plan and resume it": lambda c, b: pause_and_resume(c),
    "edit the active milestone": lambda c, b: edit_milestone(c, 1),
    "edit the next milestone": lambda c, b: edit_milestone(c, 2),
    "start another milestone": lambda c, b: [
        c.delete(f"{PLACE}/progressions/{(plan := running_plan()).active_id}"),
        c.post(f"{url_of(plan, 2)}/start"),
    ],
    "remove a plan with its strategies": lambda c, b: c.delete(url_of(running_plan())),
    "remove a plan by its page": lambda c, b: b.post(f"{PAGE}/plans/{running_plan().pk}/remove/"),
    "turn off by the page of a plan": lambda c, b: b.post(f"{PAGE}/plans/{running_plan().pk}/off/"),
    "a plan of one's own": lambda c, b: add_and_start(
        c, {"steps": {"strategyId": strategy(), "rollouts": [60, 100], "intervalMinutes": 1}}
    ),
    "a plan from a template": lambda c, b: add_and_start(c, template(c)),
    "a plan of a flag that is off": lambda c, b: start_while_off(c),
    "move a flag here with its plan": lambda c, b: bring(c, plan=True),
    "move a flag here with its safeguard": lambda c, b: bring(c, plan=False),
    "save in steps": lambda c, b: save_in_steps(b),
    "save in steps and skip": lambda c, b: save_in_steps(b, skip_change_request="yes", comment="!"),
    "revert that it was turned on": lambda c, b: revert_turning_on(c),
    "flags as code": lambda c, b: as_code(c),
    "flags as code and skip": lambda c, b: as_code(c, skipChangeRequests=True),
    "an agent": lambda c, b: call(
        c, "turn_off_flag", error=True, flag="cart", environment="production", dry_run=False
    ),
    "a signal": lambda c, b: signal(c),
}
