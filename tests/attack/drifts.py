"""Ways round an approval: a Member edits what decides the answers after it, and somebody applies it in good faith.

Each request and each plan is approved; then the Member edits what the gate lets through, because nothing answers it yet.
"""

import http.client
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

from tests.attack.approvals import ADMIN, World
from tests.attack.installation import Installation
from tests.attack.result import Result
from tests.support.live_server import Client

PROJECT = f"{ADMIN}/projects/approved"
REQUESTS = f"{PROJECT}/change-requests"
MAKE = f"{PROJECT}/environments/production/change-requests"
MEMBER = 5  # the built-in role's id
EVIL = "https://evil.example"
VARIANT = {"name": "p", "weight": 1000, "weightType": "variable", "stickiness": "default"}
Edit = tuple[str, str, Any]


def only(*ids: str) -> list[dict[str, Any]]:
    return [{"contextName": "userId", "operator": "IN", "values": list(ids)}]


class Approved(World):
    """The member ("outsider") proposes and edits; the admin approves and applies."""

    def build(self) -> None:
        self.make("admin", "POST", f"{ADMIN}/projects", {"id": "approved", "name": "Approved"})
        me = self.make("outsider", "GET", f"{ADMIN}/user")["user"]["id"]
        self.make("admin", "POST", f"{PROJECT}/access", {"roles": [MEMBER], "users": [me], "groups": []})
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

    def approve(self, feature: str, action: str, payload: Any, by: str = "admin") -> str:
        change = {"feature": feature, "action": action, "payload": payload}
        made = self.make("outsider", "POST", MAKE, change)
        path = f"{REQUESTS}/{made['id']}/state"
        self.make("outsider", "PUT", path, {"state": "In review"})
        self.make(by, "PUT", path, {"state": "Approved"})
        return path

    def find_answers(self) -> Any:
        status, answer = self.call("backend", "GET", "/api/client/features?project=approved")
        assert status == 200, answer
        return answer["features"]

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
    with closing(http.client.HTTPConnection("127.0.0.1", world.target.port, timeout=60)) as connection:
        connection.request("GET", path, headers={"Authorization": world.target.keys["admin"]})
        answer = connection.getresponse()
        answer.read()
    seen = {"If-Match": answer.getheader("ETag") or ""}
    world.make("outsider", "PUT", strategy, {"constraints": []})
    with closing(Client(world.target.port, world.target.keys["admin"])) as client:
        status, _ = client.call("PUT", f"{path}/state", {"state": "Approved"}, **seen)
    return "" if status == 412 else f"approving what was not read: {status}"


def approver_who_left(world: Approved) -> str:
    """Somebody approves, and loses the role before it is applied."""
    permission = {"name": "APPROVE_CHANGE_REQUEST", "environment": "production"}
    made = world.make("admin", "POST", f"{ADMIN}/roles", {"name": "Approver", "permissions": [permission]})
    editor = world.make("editor", "GET", f"{ADMIN}/user")["user"]["id"]
    role = made["roles"]["id"]
    access = {"roles": [role], "users": [editor], "groups": []}
    world.make("admin", "POST", f"{PROJECT}/access", access)
    world.off("left")
    path = world.approve("left", "updateEnabled", {"enabled": True}, by="editor")
    world.make("admin", "DELETE", f"{PROJECT}/users/{editor}/roles")
    status, _ = world.call("admin", "PUT", path, {"state": "Applied"})
    return "" if status == 409 else f"applying what nobody approves any more: {status}"


def segment_of_the_next_milestone(world: Approved) -> str:
    world.on("stepped")
    body = {"name": "step-only", "project": "approved", "constraints": only("1")}
    segment = world.make("admin", "POST", f"{ADMIN}/segments", body)
    steps = [{"name": "first", "strategies": [{"name": "default", "constraints": only("1")}]}]
    steps.append({"name": "second", "strategies": [{"name": "default", "segments": [segment["id"]]}]})
    template = world.make(
        "admin", "POST", f"{PROJECT}/release-templates", {"name": "Stepped", "milestones": steps}
    )
    plans = f"{world.place('stepped')}/release-plans"
    plan = world.make("outsider", "POST", plans, {"templateId": template["id"]})
    first, second = (milestone["id"] for milestone in plan["milestones"])
    path = world.approve("stepped", "startMilestone", {"planId": plan["id"], "milestoneId": first})
    world.make("admin", "PUT", path, {"state": "Applied"})
    world.make("admin", "PUT", f"{ADMIN}/segments/{segment['id']}", body | {"constraints": []})
    before = world.find_answers()
    status, _ = world.call("outsider", "POST", f"{plans}/{plan['id']}/milestones/{second}/start")
    held = status in (403, 409) and world.find_answers() == before
    return "" if held else f"a step to what was edited: {status}"


def plan_ahead_of_its_time(world: Approved) -> str:
    world.on("planned")
    steps = {"strategy": {"name": "flexibleRollout"}, "rollouts": [5, 25, 100], "intervalMinutes": 1440}
    plans = f"{world.place('planned')}/release-plans"
    plan = world.make("outsider", "POST", plans, {"steps": steps})
    first, second, _ = (milestone["id"] for milestone in plan["milestones"])
    path = world.approve("planned", "startMilestone", {"planId": plan["id"], "milestoneId": first})
    world.make("admin", "PUT", path, {"state": "Applied"})
    before = world.find_answers()
    status, _ = world.call("outsider", "POST", f"{plans}/{plan['id']}/milestones/{second}/start")
    held = status == 403 and world.find_answers() == before
    return "" if held else f"the next milestone at once: {status}"


def brake_of_a_plan(world: Approved) -> str:
    """Added to a plan that has not started yet, it would turn the flag off once it runs."""
    world.on("braked-plan")
    steps = {"strategy": {"name": "flexibleRollout"}, "rollouts": [5, 100], "intervalMinutes": 1440}
    plans = f"{world.place('braked-plan')}/release-plans"
    plan = world.make("outsider", "POST", plans, {"steps": steps})
    start = {"planId": plan["id"], "milestoneId": plan["milestones"][0]["id"]}
    path = world.approve("braked-plan", "startMilestone", start)
    read = {"metricName": "errors", "timeRange": "hour", "aggregationMode": "count"}
    brake = {
        "impactMetric": read,
        "triggerCondition": {"operator": ">", "threshold": 0},
        "action": {"type": "turnOff"},
    }
    return world.apply_edited(path, ("PUT", f"{plans}/{plan['id']}/safeguards", brake))


def plan_back_from_its_end(world: Approved) -> str:
    world.on("finished")
    steps: list[dict[str, Any]] = [
        {"name": name, "strategies": [{"name": "default"}]} for name in ("first", "last")
    ]
    steps[0]["strategies"] = [{"name": "default", "constraints": only("1")}]
    template = world.make(
        "admin", "POST", f"{PROJECT}/release-templates", {"name": "Finished", "milestones": steps}
    )
    plans = f"{world.place('finished')}/release-plans"
    plan = world.make("outsider", "POST", plans, {"templateId": template["id"]})
    milestones = [milestone["id"] for milestone in plan["milestones"]]
    for milestone in milestones:
        path = world.approve("finished", "startMilestone", {"planId": plan["id"], "milestoneId": milestone})
        world.make("admin", "PUT", path, {"state": "Applied"})
    before = world.find_answers()
    status, _ = world.call("outsider", "POST", f"{plans}/{plan['id']}/milestones/{milestones[0]}/start")
    held = status == 403 and world.find_answers() == before
    return "" if held else f"back to the first milestone: {status}"


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
    edited_before_it_is_scheduled, plan_ahead_of_its_time, brake_of_a_plan, plan_back_from_its_end, one_of_two_parents, token_of_production,
    turning_off_is_blocked,
)  # fmt: skip


def attacks(target: Installation) -> Iterator[Result]:
    world = Approved(target)
    world.build()
    for trick in TRICKS:
        fell = trick(world)
        yield Result(f"drifts: {trick.__name__.replace('_', ' ')}", not fell, fell or "held")
