"""Ways round approvals: one person who is two, what rules read, and guarded names that are used elsewhere.

The attacker leads a guarded project: may do everything there, approve and apply, but has nobody to approve for them.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import requests

from tests.attack.installation import PASSWORD, Installation
from tests.attack.result import Result

ADMIN = "/api/admin"
GUARDED, OPEN = f"{ADMIN}/projects/guarded", f"{ADMIN}/projects/unguarded"
MAKE = f"{GUARDED}/environments/production/change-requests"
OWNER = 4  # the built-in role's id
PERMISSIONS = ("APPROVE_CHANGE_REQUEST", "APPLY_CHANGE_REQUEST", "PROJECT_USER_ACCESS_WRITE")
RULES = [
    {"condition": "touchesTag", "tag": "simple:risky", "requiredApprovals": 3},
    {"condition": "changesUsers", "percent": 5, "requiredApprovals": 2},
    {"condition": "changesSavedContext", "requiredApprovals": 4},
]
PATTERN = {"contextName": "userId", "operator": "REGEX", "value": "^[0-9]{1,2}$", "values": []}


class World:
    """The server, as its admin and as the attacker call it."""

    def __init__(self, target: Installation) -> None:
        self.target = target

    def call(self, key: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        status, answer = self.target.call(key, method, path, body, **headers)
        return status, json.loads(answer) if answer[:1] in (b"{", b"[") else answer

    def make(self, key: str, method: str, path: str, body: Any = None) -> Any:
        status, answer = self.call(key, method, path, body)
        assert status < 300, (path, answer)
        return answer

    def flag(self, name: str, *constraints: Any, on: bool = False) -> None:
        place = f"{GUARDED}/features/{name}/environments/production"
        self.make("admin", "POST", f"{GUARDED}/features", {"name": name})
        strategy = {"name": "default", "constraints": list(constraints)}
        self.make("admin", "POST", f"{place}/strategies", strategy)
        if on:
            self.make("admin", "POST", f"{place}/on")

    def propose(self, name: str, enabled: bool) -> Any:
        return self.send({"feature": name, "action": "updateEnabled", "payload": {"enabled": enabled}})

    def send(self, change: Any) -> Any:
        made = self.make("outsider", "POST", MAKE, change)
        return self.make(
            "outsider", "PUT", f"{GUARDED}/change-requests/{made['id']}/state", {"state": "In review"}
        )

    def admit(self, project: str, *roles: int, who: str = "outsider") -> Any:
        """Grants somebody these roles, and no others, in the project. Returns their id."""
        user = self.make(who, "GET", f"{ADMIN}/user")["user"]["id"]
        body = {"roles": roles, "users": [user], "groups": []}
        self.make("admin", "POST", f"{ADMIN}/projects/{project}/access", body)
        return user


W = TypeVar("W", bound=World)


def play(kind: str, world: W, tricks: Iterable[Callable[[W], str]]) -> Iterator[Result]:
    """A trick returns what fell, "" if nothing did."""
    for trick in tricks:
        fell = trick(world)
        yield Result(f"{kind}: {trick.__name__.replace('_', ' ')}", not fell, fell or "held")


def build(world: World) -> None:
    for project in ("guarded", "unguarded"):
        world.make("admin", "POST", f"{ADMIN}/projects", {"id": project, "name": project})
    permissions = [
        {"name": name, **({} if name.startswith("PROJECT") else {"environment": "production"})}
        for name in PERMISSIONS
    ]
    lead = world.make("admin", "POST", f"{ADMIN}/roles", {"name": "Lead", "permissions": permissions})
    world.admit("guarded", OWNER, lead["roles"]["id"])
    world.admit("unguarded", OWNER)
    for name in ("off", "moved", "deleted"):
        world.flag(name)
    for name in ("child", "parent", "shared", "hosts", "together", "braked", "sampled"):
        world.flag(name, on=True)
    world.flag("pattern", PATTERN)
    world.make("admin", "POST", f"{ADMIN}/features/child/tags", {"type": "simple", "value": "risky"})
    world.make("admin", "POST", f"{GUARDED}/features/child/dependencies", {"feature": "parent"})
    saved = {"name": "Watched", "project": "guarded", "context": {"userId": "7"}}
    world.make("admin", "POST", f"{ADMIN}/playground/contexts", saved)
    policy = {"changeRequestsEnabled": True, "requiredApprovals": 1, "approvalRules": RULES}
    world.make("admin", "PUT", f"{MAKE}/config", policy)


def puppet(world: World) -> str:
    """Invites somebody with the own role, opens the link, and approves as them."""
    lead = next(
        role for role in world.make("admin", "GET", f"{ADMIN}/roles")["roles"] if role["name"] == "Lead"
    )
    invited = world.make(
        "outsider", "POST", f"{GUARDED}/access/invite", {"who": "puppet@example.org", "role": lead["id"]}
    )
    session, url = requests.Session(), world.target.url
    token = invited["inviteLink"].rstrip("/").rsplit("/", 1)[-1]
    session.post(f"{url}/auth/reset/password", json={"token": token, "password": PASSWORD}, timeout=30)
    login = {"username": "puppet@example.org", "password": PASSWORD}
    assert session.post(f"{url}/auth/simple/login", json=login, timeout=30).ok
    made = world.propose("off", True)
    answer = session.put(
        f"{url}{GUARDED}/change-requests/{made['id']}/state",
        json={"state": "Approved"},
        headers={"X-CSRFToken": session.cookies.get("csrftoken") or "", "Referer": url},
        timeout=30,
    )
    refused = answer.status_code == 403 and "was invited by" in answer.text
    return "" if refused else f"the puppet's approval: {answer.status_code} {answer.text[:200]}"


def move_away(world: World) -> str:
    status, _ = world.call(
        "outsider", "POST", f"{GUARDED}/features/moved/changeProject", {"newProjectId": "unguarded"}
    )
    return "" if status == 403 else f"moving: {status}"


def make_anew(world: World) -> str:
    world.make("outsider", "DELETE", f"{GUARDED}/features/deleted")
    world.make("outsider", "DELETE", f"{ADMIN}/archive/deleted")
    status, _ = world.call("outsider", "POST", f"{OPEN}/features", {"name": "deleted"})
    return "" if status == 403 else f"making anew: {status}"


def delete_saved_context(world: World) -> str:
    listed = world.make("outsider", "GET", f"{ADMIN}/playground/contexts?project=guarded")
    key = next(each["id"] for each in listed["contexts"] if each["name"] == "Watched")
    status, _ = world.call("outsider", "DELETE", f"{ADMIN}/playground/contexts/{key}")
    return "" if status == 403 else f"deleting what a rule reads: {status}"


def untagged_parent(world: World) -> str:
    needed = world.propose("parent", False)["minApprovals"]
    return "" if needed == 3 else f"a tagged child needs {needed} approvals"


def pattern_of_ids(world: World) -> str:
    needed = world.propose("pattern", True)["minApprovals"]
    return "" if needed == 4 else f"a pattern of ids needs {needed} approvals"


def add_first(world: World, flag: str, **strategy: Any) -> str:
    """What falls if a strategy before the others, which may be for everybody, needs no more than others."""
    variant = {"name": "evil", "weight": 1000, "weightType": "variable", "stickiness": "default"}
    payload = {"name": "default", "sortOrder": -1, "variants": [variant], **strategy}
    needed = world.send({"feature": flag, "action": "addStrategy", "payload": payload})["minApprovals"]
    return "" if needed == 4 else f"it needs {needed} approvals"


def group_that_has_everybody(world: World) -> str:
    """4 % by a field that all users share, in a group whose 4 % have its value."""
    parameters = {"rollout": "4", "stickiness": "environment", "groupId": "grp11"}
    return add_first(world, "shared", name="flexibleRollout", parameters=parameters)


def hosts_that_only_sdks_know(world: World) -> str:
    return add_first(world, "hosts", name="applicationHostname", parameters={"hostNames": "web1"})


def sample_made_small(world: World) -> str:
    """So many values that there is time for 100 users only, and a group that has 7 % of all users and 4 of these."""
    values = [f"{number}" for number in range(250)]
    constraint = {"contextName": "userId", "operator": "IN", "values": values}
    path = f"{GUARDED}/features/padded/environments/production/strategies"
    world.make("admin", "POST", f"{GUARDED}/features", {"name": "padded"})
    for _ in range(10):
        world.make("admin", "POST", path, {"name": "default", "constraints": [constraint] * 30})
    variants = [{"name": "p", "weight": 1000, "weightType": "variable", "stickiness": "default"}]
    padding = {"feature": "padded", "action": "patchVariant", "payload": {"variants": variants}}
    parameters = {"rollout": "7", "stickiness": "userId", "groupId": "19"}
    payload = {"name": "flexibleRollout", "sortOrder": -1, "parameters": parameters, "variants": variants}
    made = world.send([padding, {"feature": "sampled", "action": "addStrategy", "payload": payload}])
    told = made["impact"]["changed"], made["impact"]["users"], made["minApprovals"]
    return "" if told[1] < 1_000 and told[2] >= 2 else f"changed users, users, approvals: {told}"


def conditions_that_all_meet_together(world: World) -> str:
    each = {"operator": "IN", "values": ["x"]}
    return add_first(world, "together", constraints=[each | {"contextName": f"p{n}"} for n in range(12)])


def worst_case_among_the_certain(world: World) -> str:
    """A safeguard changes nothing for certain. What it may turn off is told apart, and counts for the rules."""
    read = {"metricName": "errors", "source": "internal", "timeRange": "hour", "aggregationMode": "count"}
    values = {"impactMetric": read, "triggerCondition": {"operator": ">", "threshold": 10}}
    payload = {"safeguard": values}
    made = world.send({"feature": "braked", "action": "changeFeatureEnvSafeguard", "payload": payload})
    told = made["impact"]["changed"], made["impact"]["ifBreached"]["changed"], made["minApprovals"]
    return "" if told[0] == 0 < told[1] and told[2] == 2 else f"certain, if breached, approvals: {told}"


TRICKS: tuple[Callable[[World], str], ...] = (
    untagged_parent, pattern_of_ids, group_that_has_everybody, hosts_that_only_sdks_know, conditions_that_all_meet_together,
    sample_made_small, worst_case_among_the_certain, puppet, delete_saved_context, move_away, make_anew,
)  # fmt: skip


def attacks(target: Installation) -> Iterator[Result]:
    world = World(target)
    build(world)
    yield from play("approvals", world, TRICKS)
