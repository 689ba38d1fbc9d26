"""Ways round an approval: a Member edits what decides the answers after it, and somebody applies it in good faith.

Each request and each plan is approved; then the Member edits what the gate lets through, because nothing answers it yet.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import requests

from tests.attack.approvals import ADMIN, World, play
from tests.attack.installation import Installation
from tests.attack.result import Result

PROJECT = f"{ADMIN}/projects/approved"
REQUESTS = f"{PROJECT}/change-requests"
MAKE = f"{PROJECT}/environments/production/change-requests"
MEMBER = 5  # the built-in role's id
DAILY = {
    "steps": {"strategy": {"name": "flexibleRollout"}, "rollouts": [5, 25, 100], "intervalMinutes": 1440}
}
EVIL = "https://evil.example"
VARIANT = {"name": "p", "weight": 1000, "weightType": "variable", "stickiness": "default"}
Edit = tuple[str, str, Any]


def only(*ids: str) -> list[dict[str, Any]]:
    return [{"contextName": "userId", "operator": "IN", "values": list(ids)}]


class Approved(World):
    """The member ("outsider") proposes and edits; the admin approves and applies."""

    def build(self) -> None:
        self.make("admin", "POST", f"{ADMIN}/projects", {"id": "approved", "name": "Approved"})
        self.admit("approved", MEMBER)
        policy = {"changeRequestsEnabled": True, "requiredApprovals": 1}
        self.make("admin", "PUT", f"{MAKE}/config", policy)

    def place(self, name: str) -> str:
        return f"{PROJECT}/features/{name}/environments/production"

    def off(self, name: str, **strategy: Any) -> str:
        """A flag that is off, and the path of its strategy."""
        self.make("admin", "POST", f"{PROJECT}/features", {"name": name})
        body = {"name": "default", "constraints": only("1"), **strategy}
        made = self.make("admin", "POST", f"{self.place(name)}/strategies", body)
        self.make("admin", "PUT", f"{self.place(name)}/variants", [VARIANT])
        return f"{self.place(name)}/strategies/{made['id']}"

    def on(self, name: str) -> str:
        strategy = self.off(name)
        self.make("admin", "POST", f"{self.place(name)}/on")
        return strategy

    def template(self, *strategies: dict[str, Any]) -> dict[str, Any]:
        """A milestone for each strategy."""
        milestones = [
            {"name": f"{number}", "strategies": [{"name": "default", **strategy}]}
            for number, strategy in enumerate(strategies)
        ]
        body = {"name": f"Template of {milestones}"[:200], "milestones": milestones}
        made = self.make("admin", "POST", f"{PROJECT}/release-templates", body)
        return {"templateId": made["id"]}

    def plan(self, name: str, body: dict[str, Any]) -> "Plan":
        """The member's plan for a flag that is on."""
        self.on(name)
        plans = f"{self.place(name)}/release-plans"
        made = self.make("outsider", "POST", plans, body)
        return Plan(self, name, f"{plans}/{made['id']}", made)

    def approve(self, feature: str, action: str, payload: Any, by: str = "admin") -> str:
        change = {"feature": feature, "action": action, "payload": payload}
        made = self.make("outsider", "POST", MAKE, change)
        path = f"{REQUESTS}/{made['id']}/state"
        self.make("outsider", "PUT", path, {"state": "In review"})
        self.make(by, "PUT", path, {"state": "Approved"})
        return path

    def find_answers(self) -> Any:
        """Of this project: what earlier attacks left in others may change meanwhile, a plan's next step for example."""
        status, answer = self.call("backend", "GET", "/api/client/features")
        assert status == 200, answer
        return [flag for flag in answer["features"] if flag["project"] == "approved"]

    def apply_edited(self, path: str, edit: Edit, by: str = "outsider") -> str:
        """Edits, and applies. Returns what fell, "" if nothing did."""
        before = self.find_answers()
        status, answer = self.call(by, *edit)
        if status >= 300:
            return f"the edit itself: {status} {answer}"
        edited = self.find_answers()
        if on(edited) != on(before):
            return "the gate let the edit through"
        status, _ = self.call("admin", "PUT", path, {"state": "Applied"})
        if status != 409 or on(self.find_answers()) != on(before):
            return f"applying what was edited: {status}"
        return ""


class Plan(NamedTuple):
    world: Approved
    feature: str
    path: str
    document: dict[str, Any]

    def approve(self, number: int) -> str:
        """The start of a milestone. Returns the path of the request."""
        start = {"planId": self.document["id"], "milestoneId": self.document["milestones"][number]["id"]}
        return self.world.approve(self.feature, "startMilestone", start)

    def start(self, number: int) -> None:
        self.world.make("admin", "PUT", self.approve(number), {"state": "Applied"})

    def step(self, number: int, *refusals: int) -> str:
        """What falls if the member may start a milestone."""
        before, milestone = self.world.find_answers(), self.document["milestones"][number]["id"]
        status, _ = self.world.call("outsider", "POST", f"{self.path}/milestones/{milestone}/start")
        after = self.world.find_answers()
        if status in refusals and before == after:
            return ""
        old, new = ({flag["name"]: flag for flag in flags} for flags in (before, after))
        changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
        return f"starting milestone {number}: {status}; {changed} differ"


def on(features: list[Any]) -> list[Any]:
    return [feature for feature in features if feature["enabled"]]


def turn_on(world: Approved, name: str) -> str:
    return world.approve(name, "updateEnabled", {"enabled": True})


def payload_of_a_variant(world: Approved) -> str:
    world.off("payload")
    patch = [{"op": "add", "path": "/0/payload", "value": {"type": "string", "value": EVIL}}]
    edit = "PATCH", f"{world.place('payload')}/variants", patch
    return world.apply_edited(turn_on(world, "payload"), edit)


def variants_of_a_strategy(world: Approved) -> str:
    strategy = world.off("strategy")
    return world.apply_edited(turn_on(world, "strategy"), ("PUT", strategy, {"variants": [VARIANT]}))


def one_user_more(world: Approved) -> str:
    ids = [f"{number}" for number in range(60)]
    strategy = world.off("users", constraints=only(*ids))
    edit = "PUT", strategy, {"constraints": only(*ids, "attacker")}
    return world.apply_edited(turn_on(world, "users"), edit)


def variant_of_a_parent(world: Approved) -> str:
    world.on("base")
    world.off("heir-of-variant")
    parent = {"feature": "base", "enabled": True, "variants": ["p"]}
    path = f"{PROJECT}/features/heir-of-variant/dependencies"
    world.make("admin", "POST", path, parent)
    return world.apply_edited(turn_on(world, "heir-of-variant"), ("POST", path, parent | {"variants": []}))


def segment_that_nothing_uses(world: Approved) -> str:
    world.on("segmented")
    body = {"name": "approved-only", "project": "approved", "constraints": only("1")}
    segment = world.make("admin", "POST", f"{ADMIN}/segments", body)
    added = {"name": "default", "segments": [segment["id"]]}
    path = world.approve("segmented", "addStrategy", added)
    edit = "PUT", f"{ADMIN}/segments/{segment['id']}", body | {"constraints": []}
    return world.apply_edited(path, edit, by="admin")


def edited_before_it_is_scheduled(world: Approved) -> str:
    strategy = world.off("scheduled")
    path = turn_on(world, "scheduled")
    world.make("outsider", "PUT", strategy, {"constraints": []})
    body = {"state": "Scheduled", "scheduledAt": "2099-03-06T09:00:00Z"}
    status, _ = world.call("admin", "PUT", path, body)
    return "" if status == 409 else f"scheduling what was edited: {status}"


def strategy_that_a_flag_gets(world: Approved) -> str:
    """The default strategy of the project, for a flag that has none."""
    world.make("admin", "POST", f"{PROJECT}/features", {"name": "bare"})
    path = turn_on(world, "bare")
    default = {"name": "flexibleRollout", "parameters": {"rollout": "1", "stickiness": "default"}}
    edit = "POST", f"{PROJECT}/environments/production/default-strategy", default
    return world.apply_edited(path, edit, by="admin")


def approved_unread(world: Approved) -> str:
    """A reviewer approves a page that was opened before the edit."""
    strategy = world.off("unread")
    change = {"feature": "unread", "action": "updateEnabled", "payload": {"enabled": True}}
    path = f"{REQUESTS}/{world.make('outsider', 'POST', MAKE, change)['id']}"
    world.make("outsider", "PUT", f"{path}/state", {"state": "In review"})
    url, secret = f"{world.target.url}{path}", {"Authorization": world.target.keys["admin"]}
    seen = {"If-Match": requests.get(url, headers=secret, timeout=60).headers["ETag"]}
    world.make("outsider", "PUT", strategy, {"constraints": []})
    status, _ = world.call("admin", "PUT", f"{path}/state", {"state": "Approved"}, **seen)
    return "" if status == 412 else f"approving what was not read: {status}"


def approver_who_left(world: Approved) -> str:
    """Somebody approves, and loses the role before it is applied."""
    permission = {"name": "APPROVE_CHANGE_REQUEST", "environment": "production"}
    made = world.make("admin", "POST", f"{ADMIN}/roles", {"name": "Approver", "permissions": [permission]})
    editor = world.admit("approved", made["roles"]["id"], who="editor")
    world.off("left")
    path = world.approve("left", "updateEnabled", {"enabled": True}, by="editor")
    world.make("admin", "DELETE", f"{PROJECT}/users/{editor}/roles")
    status, _ = world.call("admin", "PUT", path, {"state": "Applied"})
    return "" if status == 409 else f"applying what nobody approves any more: {status}"


def segment_of_the_next_milestone(world: Approved) -> str:
    body = {"name": "step-only", "project": "approved", "constraints": only("1")}
    segment = world.make("admin", "POST", f"{ADMIN}/segments", body)
    plan = world.plan("stepped", world.template({"constraints": only("1")}, {"segments": [segment["id"]]}))
    plan.start(0)
    world.make("admin", "PUT", f"{ADMIN}/segments/{segment['id']}", body | {"constraints": []})
    return plan.step(1, 403, 409)


def template_of_a_plan(world: Approved) -> str:
    """A request adds the plan of a template, and starts it. The template is edited."""
    world.off("templated")
    body = world.template({"constraints": only("1")})
    path = world.approve("templated", "addReleasePlan", body)
    edited = {"name": "Edited", "milestones": [{"name": "all", "strategies": [{"name": "default"}]}]}
    edit = "PUT", f"{PROJECT}/release-templates/{body['templateId']}", edited
    return world.apply_edited(path, edit, by="admin")


def plan_ahead_of_its_time(world: Approved) -> str:
    plan = world.plan("planned", DAILY)
    plan.start(0)
    return plan.step(1, 403)


def brake_of_a_plan(world: Approved) -> str:
    """Added to a plan that has not started yet, it would turn the flag off once it runs."""
    plan = world.plan("braked-plan", DAILY)
    path = plan.approve(0)
    brake = {
        "impactMetric": {"metricName": "errors", "timeRange": "hour", "aggregationMode": "count"},
        "triggerCondition": {"operator": ">", "threshold": 0},
        "action": {"type": "turnOff"},
    }
    return world.apply_edited(path, ("PUT", f"{plan.path}/safeguards", brake))


def plan_back_from_its_end(world: Approved) -> str:
    plan = world.plan("finished", world.template({"constraints": only("1")}, {}))
    plan.start(0)
    plan.start(1)
    return plan.step(0, 403)


def one_of_two_parents(world: Approved) -> str:
    for name in ("mother", "father", "heir"):
        world.on(name)
    path = f"{PROJECT}/features/heir/dependencies"
    for name in ("mother", "father"):
        world.make("admin", "POST", path, {"feature": name})
    request = world.approve("heir", "deleteDependency", {"feature": "father"})
    world.make("admin", "PUT", request, {"state": "Applied"})
    [heir] = [flag for flag in world.find_answers() if flag["name"] == "heir"]
    left = [parent["feature"] for parent in heir.get("dependencies", [])]
    return "" if left == ["mother"] else f"parents left: {left}"


def token_of_production(world: Approved) -> str:
    """A member revokes it, and with it what production's SDKs get. The server guards these tokens."""
    body = {"tokenName": "live", "type": "client", "environment": "production", "projects": ["approved"]}
    secret = world.make("admin", "POST", f"{PROJECT}/api-tokens", body)["secret"]
    status, _ = world.call("outsider", "DELETE", f"{PROJECT}/api-tokens/{secret}")
    world.target.keys["live"] = secret
    answers, _ = world.call("live", "GET", "/api/client/features")
    return "" if (status, answers) == (403, 200) else f"revoking: {status}, then SDKs get {answers}"


def impression_data(world: Approved) -> str:
    """Of a flag that is on: all its SDKs report each evaluation."""
    world.on("reported")
    patch = [{"op": "replace", "path": "/impressionData", "value": True}]
    status, _ = world.call("outsider", "PATCH", f"{PROJECT}/features/reported", patch)
    reported = any(flag["impressionData"] for flag in world.find_answers())
    return "" if status == 403 and not reported else f"turning it on: {status}"


def turning_off_is_blocked(world: Approved) -> str:
    """The other way round: no edit must be able to delay this."""
    world.on("urgent")
    path = world.approve("urgent", "updateEnabled", {"enabled": False})
    world.make("admin", "PUT", f"{world.place('urgent')}/variants", [])
    status, answer = world.call("admin", "PUT", path, {"state": "Applied"})
    return "" if status == 200 else f"turning off: {status} {answer}"


TRICKS: tuple[Callable[[Approved], str], ...] = (
    payload_of_a_variant, variants_of_a_strategy, one_user_more, variant_of_a_parent, segment_that_nothing_uses,
    strategy_that_a_flag_gets, approved_unread, approver_who_left, segment_of_the_next_milestone,
    template_of_a_plan, edited_before_it_is_scheduled, plan_ahead_of_its_time, brake_of_a_plan, plan_back_from_its_end, one_of_two_parents, token_of_production, impression_data,
    turning_off_is_blocked,
)  # fmt: skip


def attacks(target: Installation) -> Iterator[Result]:
    world = Approved(target)
    world.build()
    yield from play("drifts", world, TRICKS)
