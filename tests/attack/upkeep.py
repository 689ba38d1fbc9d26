"""/metrics, and maintenance mode."""

from collections.abc import Iterator
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.attack.calls import Call, Verdict, imported
from tests.attack.installation import Installation
from tests.attack.result import Result

METRICS_TOKEN = "a-token-for-prometheus"
MAINTENANCE = "/api/admin/maintenance"
PROJECT = "/api/admin/projects/checkout"
CREDENTIALS = (
    "", "Bearer", "Bearer ", f"bearer{METRICS_TOKEN}", METRICS_TOKEN, "Bearer \xfc", f"Bearer {METRICS_TOKEN} ,x",
    "Basic eDp5", "Bearer " + "x" * 4_000,
)  # fmt: skip
ODD_NAMES = ('a"b', "a\nb", "a\\", 'a{b="c"} 1\nflagadmin_up 7', "\u2028", "\0", "é", "x" * 2_000)
PATHS = 500  # that do not exist: none may get a series of its own
CHANGES: tuple[tuple[str, str, Any], ...] = (
    ("POST", "/api/admin/projects", {"id": "closed", "name": "Closed"}),
    ("POST", f"{PROJECT}/features", {"name": "closed"}),
    ("PATCH", f"{PROJECT}/features/dark-theme", [{"op": "replace", "path": "/description", "value": "closed"}]),
    ("DELETE", f"{PROJECT}/features/dark-theme", None),
    ("POST", f"{PROJECT}/features/dark-theme/environments/production/off", {}),
    ("POST", f"{PROJECT}/bulk_features/environments/production/off", {"features": ["dark-theme"]}),
    ("POST", f"{PROJECT}/archive", {"features": ["dark-theme"]}),
    ("POST", "/api/admin/segments", {"name": "closed", "constraints": []}),
    ("POST", "/api/admin/context", {"name": "closed"}),
    ("POST", "/api/admin/tag-types", {"name": "closed"}),
    ("POST", "/api/admin/user-admin", {"username": "closed"}),
    ("POST", "/api/admin/groups", {"name": "closed"}),
    ("POST", "/api/admin/user/tokens", {"description": "closed"}),
    ("POST", "/api/admin/playground/contexts", {"name": "closed", "context": {}}),
    ("POST", "/api/admin/environments", {"name": "closed", "type": "test"}),
    ("POST", "/api/admin/ui-config/cors", {"frontendApiOrigins": ["https://closed.example"]}),
    ("POST", "/api/admin/features-batch/import", imported(["closed"])),
)  # fmt: skip
GOES_ON = (
    Call("backend", "GET", "/api/client/features"),
    Call("backend", "GET", "/api/client/delta"),
    Call("frontend", "POST", "/ofrep/v1/evaluate/flags", {"context": {"targetingKey": "1"}}),
    Call(
        "viewer",
        "POST",
        "/api/admin/playground",
        {"environment": "production", "projects": ["*"], "context": {}},
    ),
    Call("viewer", "GET", f"{PROJECT}/features"),
    Call("", "GET", "/healthz"),
    Call("", "GET", "/readyz"),
)


def attacks(target: Installation) -> Iterator[Result]:
    yield metrics(target)
    yield maintenance(target)


def metrics(target: Installation) -> Result:
    verdict = Verdict(target)
    for sent in CREDENTIALS:
        verdict.send(Call("", "GET", "/metrics", None, {"Authorization": sent}, (400, 401)))
    for key in target.keys:
        verdict.send(Call(key, "GET", "/metrics", statuses=(401,)))
    before = series(verdict)
    for number in range(PATHS):
        verdict.send(Call("", "GET" if number % 2 else "ODD", f"/{number}/nowhere"))
    for name in ODD_NAMES:
        times = {"start": "2026-11-21T03:26:40Z", "stop": "2026-11-21T03:27:40Z"}
        samples = [{"labels": {name: name}, "value": 1}]
        impact = {"name": name, "type": "counter", "help": name, "samples": samples}
        body: dict[str, Any] = {"appName": name, "instanceId": name, "impactMetrics": [impact]}
        body["bucket"] = times | {"toggles": {name: {"yes": 1}}}
        verdict.send(Call("backend", "POST", "/api/client/metrics", body))
        verdict.send(Call("backend", "GET", "/internal-backstage/impact/metrics"))
    grown = series(verdict) - before
    if grown > PATHS / 2:
        verdict.fault(f"{grown} new series for {PATHS} paths")
    return verdict.result("/metrics", f"{before} series, then {grown} more")


def series(verdict: Verdict) -> int:
    sent = {"Authorization": f"Bearer {METRICS_TOKEN}"}
    _, answer = verdict.send(Call("", "GET", "/metrics", None, sent, (200,)))
    return sum(len(family.samples) for family in text_string_to_metric_families(answer.decode()))


def maintenance(target: Installation) -> Result:
    """Nothing changes while it is on, whoever asks, and everything else goes on."""
    verdict = Verdict(target)
    for body in ({}, [], {"enabled": "maybe"}, {"enabled": None}):
        verdict.send(Call("admin", "POST", MAINTENANCE, body, statuses=(400,)))
    for key in ("editor", "viewer", "outsider", "backend", ""):
        verdict.send(Call(key, "POST", MAINTENANCE, {"enabled": True}, statuses=(401, 403)))
    events = Call("admin", "GET", "/api/admin/events?limit=5")
    verdict.send(Call("admin", "POST", MAINTENANCE, {"enabled": True}, statuses=(204,)))
    try:
        _, before = verdict.send(events)
        for method, path, body in CHANGES:
            for key in ("admin", "editor"):
                statuses = (503, 403) if key == "editor" else (503,)
                verdict.send(Call(key, method, path, body, statuses=statuses))
        for call in GOES_ON:
            verdict.send(call._replace(statuses=(200,)))
        if verdict.send(events)[1] != before:
            verdict.fault("something changed")
    finally:
        verdict.send(Call("admin", "POST", MAINTENANCE, {"enabled": False}, statuses=(204,)))
    verdict.send(Call("admin", "POST", "/api/admin/tag-types", {"name": "reopened"}, statuses=(201,)))
    return verdict.result("changes during maintenance", f"{len(CHANGES)} kinds of change")
