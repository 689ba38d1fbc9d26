"""Other doors than the gate: what breaches safeguards and fires kill switches, and what answers tell of the hidden.

Each safeguard that must not act has a twin that must: the attack has fallen if it acts before, or with, its twin.
"""

import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import requests

from tests.attack.approvals import ADMIN, OWNER, World, play
from tests.attack.drifts import MEMBER
from tests.attack.installation import Installation
from tests.attack.result import Result

PROJECT = f"{ADMIN}/projects/doors"
SIGNALS = f"{ADMIN}/signals"
PATIENCE = (
    240.0  # seconds for the twins: safeguards are looked at once a minute, and count from the next full one
)
ROUND = 70.0  # seconds in which each safeguard is looked at
TRUE, PUBLIC, FOREIGN, STAGED = "true_errors", "public_errors", "foreign_errors", "staged_errors"
METRICS = {TRUE: "backend", PUBLIC: "frontend", FOREIGN: "portal", STAGED: "staged"}
"""The key that reports each metric. Only the first one may."""
ALERTS = {"TrueAlert": "admin", "FiredByEditor": "editor"}
"""Who has the token of the source that sends each alert."""


class Doors(World):
    tokens: dict[str, str]

    def build(self) -> None:
        self.make("admin", "POST", f"{ADMIN}/projects", {"id": "doors", "name": "Doors"})
        self.admit("doors", MEMBER)
        staged = {"type": "client", "environment": "development", "projects": ["doors"]}
        self.target.keys["staged"] = self.make(
            "admin", "POST", f"{ADMIN}/api-tokens", staged | {"tokenName": "staged"}
        )["secret"]
        self.tokens = {who: self.make_source(who) for who in ("admin", "editor")}
        for name in METRICS:
            self.guard(name, "internal", {"timeRange": "hour", "aggregationMode": "count"})
        for name in ALERTS:
            self.guard(name, "alert", {})
        self.guard("switch")
        rule = {"name": "Kill", "match": {"labels.alertname": "Kill"}, "then": "turnOff", "enabled": True}
        place = {"project": "doors", "flag": "switch", "environment": "production"}
        self.make("admin", "POST", f"{SIGNALS}/{self.find_source('admin')}/rules", rule | place)

    def make_source(self, who: str) -> str:
        token: str = self.make(who, "POST", SIGNALS, {"name": f"of-{who}", "kind": "alertmanager"})["token"]
        return token

    def find_source(self, who: str) -> int:
        listed = self.make("admin", "GET", SIGNALS)["sources"]
        key: int = next(source["id"] for source in listed if source["name"] == f"of-{who}")
        return key

    def guard(self, name: str, source: str = "", metric: dict[str, str] | None = None) -> None:
        """A flag that is on, and what turns it off."""
        place = f"{PROJECT}/features/{name}/environments/production"
        self.make("admin", "POST", f"{PROJECT}/features", {"name": name})
        self.make("admin", "POST", f"{place}/strategies", {"name": "default"})
        self.make("admin", "POST", f"{place}/on")
        if source:
            read = {"metricName": name, "source": source, **(metric or {})}
            trigger = {} if source == "alert" else {"triggerCondition": {"operator": ">", "threshold": 10}}
            self.make("admin", "PUT", f"{place}/safeguards", {"impactMetric": read, **trigger})

    def find_on(self) -> set[str]:
        status, answer = self.call("backend", "GET", "/api/client/features?project=doors")
        assert status == 200, answer
        return {flag["name"] for flag in answer["features"] if flag["enabled"]}

    def report(self, name: str, key: str) -> None:
        sample = {"name": name, "help": "", "type": "counter", "samples": [{"labels": {}, "value": 1_000}]}
        url = "/api/frontend/client/metrics" if key == "frontend" else "/api/client/metrics"
        self.make(key, "POST", url, {"appName": "web", "impactMetrics": [sample]})

    def fire(self, who: str, token: str, alert: str, number: int) -> Any:
        body = {"alerts": [{"status": "firing", "labels": {"alertname": alert}, "fingerprint": f"{number}"}]}
        self.target.keys["signal"] = token
        return self.make("signal", "POST", f"/api/signals/of-{who}", body)["results"]


def breach(world: Doors) -> Iterator[Result]:
    """Reports and fires until all twins are off: those that may, and those that may not."""
    until, numbers = time.monotonic() + PATIENCE, count()
    while time.monotonic() < until:
        if not {TRUE, "TrueAlert"} & world.find_on():
            until = min(until, time.monotonic() + ROUND)  # each is looked at in its own second of the minute
        for name, key in METRICS.items():
            world.report(name, key)
        for alert, who in ALERTS.items():
            world.fire(who, world.tokens[who], alert, next(numbers))
        time.sleep(5)
    left = world.find_on()
    idle = sorted({TRUE, "TrueAlert"} & left)
    for name in (PUBLIC, FOREIGN, STAGED, "FiredByEditor"):
        told = f"nothing breached {', '.join(idle)} either" if idle else "" if name in left else "breached"
        yield Result(f"doors: {name.replace('_', ' ')}", not told, told or "held")


def token_of_a_kill_switch(world: Doors) -> str:
    source = world.find_source("admin")
    token = world.make("editor", "POST", f"{SIGNALS}/{source}/token")["token"]
    [result] = world.fire("admin", token, "Kill", 0)
    held = result["result"] == "refused" and "switch" in world.find_on()
    return "" if held else f"firing with a new token: {result}"


def sources_that_exist(world: Doors) -> str:
    """Somebody who may see no source asks for one that exists, and for one that does not."""
    source = world.find_source("admin")
    answers = [world.call("viewer", "GET", f"{SIGNALS}/{key}") for key in (source, source + 1_000_000)]
    told = [(status, answer["message"]) for status, answer in answers]
    return "" if told[0] == told[1] and told[0][0] == 404 else f"sources: {told}"


def names_of_groups(world: Doors) -> str:
    """Of all groups, to the owner of a project."""
    world.admit("doors", MEMBER, OWNER)
    world.make("admin", "POST", f"{ADMIN}/groups", {"name": "Secret merger", "users": []})
    listed = world.make("outsider", "GET", f"{ADMIN}/user-admin/access")
    names = [group["name"] for group in listed["groups"]]
    return f"groups: {names}" if "Secret merger" in names else ""


def former_events(world: Doors) -> str:
    """Of a project that was deleted, to somebody with a role in the one that has its id now."""
    for name in ("Former name", "Present name"):
        world.make("admin", "POST", f"{ADMIN}/projects", {"id": "again", "name": name})
        if name == "Former name":
            world.make("admin", "DELETE", f"{ADMIN}/projects/again")
    world.admit("again", MEMBER)
    events = world.make("outsider", "GET", f"{ADMIN}/events?project=IS:again")["events"]
    shown = [event["type"] for event in events if "Former name" in str(event)]
    created = sum(event["type"] == "project-created" for event in events)
    return "" if not shown and created == 1 else f"events of the former project: {shown}, {created} created"


def relays_pushed_out(world: Doors) -> str:
    figures = dict.fromkeys(("uptimeSeconds", "intervalSeconds", "flagsAgeSeconds", "tokens", "clients"), 1)
    relay = figures | {"streams": 1, "region": "eu", "version": "1"}
    world.make("backend", "POST", "/api/client/relays", {"relays": [relay | {"id": "real-relay"}]})
    for part in range(45):  # more than are kept
        invented = [relay | {"id": f"invented-{part}-{number}"} for number in range(50)]
        world.make("portal", "POST", "/api/client/relays", {"relays": invented})
    listed = [relay["id"] for relay in world.make("admin", "GET", f"{ADMIN}/relays")["relays"]]
    return "" if "real-relay" in listed else f"the real relay is gone, {len(listed)} are left"


def kept_error_pages(world: Doors) -> str:
    kept, cookies = [], {"sessionid": world.target.sessions["console"]}
    for path in ("/nowhere/", "/projects/nowhere/", "/signals/999999/", "/import/nowhere/", "/users/999999/"):
        answer = requests.get(f"{world.target.url}{path}", cookies=cookies, timeout=60)
        if "no-store" not in answer.headers.get("Cache-Control", ""):
            kept.append(f"{path} {answer.status_code}")
    return f"caches may keep {', '.join(kept)}" if kept else ""


TRICKS: tuple[Callable[[Doors], str], ...] = (
    token_of_a_kill_switch, sources_that_exist, names_of_groups, former_events, relays_pushed_out, kept_error_pages,
)  # fmt: skip


def attacks(target: Installation) -> Iterator[Result]:
    world = Doors(target)
    world.build()
    yield from breach(world)
    yield from play("doors", world, TRICKS)
