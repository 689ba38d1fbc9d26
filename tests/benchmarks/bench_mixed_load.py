"""A large installation under everything at once: SDKs that poll, stream and report, evaluations, edits, imports, pages.

``python -m tests.benchmarks.bench_mixed_load [MINUTES [FLAGS]]`` (default: 3 100000; a release is tried for 30). A server with
two workers; the load takes about half a core of it. Every answer is checked: its status, and that no version follows a
newer one. Refusals that are meant are kinds of their own. Fails if there was any error.
"""

import itertools
import random
import re
import sys
from typing import Any

from tests.benchmarks.bench_large_pages import LARGE_PAGES
from tests.benchmarks.bench_playground import question
from tests.benchmarks.large_data import APPLICATIONS, FLAGS, PROJECTS, make_large_data
from tests.benchmarks.mixed_traffic import (
    Connection,
    Log,
    Reports,
    Streams,
    Wrong,
    delta,
    features,
    once,
    repeat,
)
from tests.benchmarks.mixed_watch import Watch
from tests.browser.pages import PAGES, filled, meant_status
from tests.support.live_server import data_directory, started

METRICS_TOKEN = "a-token-for-the-scrapes"
POLLED, STREAMED = 10, 30  # projects
IMPORTED = 20  # flags


class Editor:
    """Switches flags, makes and removes some, and imports a file."""

    def __init__(self, port: int, secret: str, each: int) -> None:
        self._connection = Connection(port, Authorization=secret)
        self._each = each
        self._random = random.Random(7)
        self._turn = itertools.count()

    def switch(self) -> None:
        project = f"p{self._random.randrange(PROJECTS):02}"
        flag = f"{project}-{self._random.randrange(self._each):05}"
        to = self._random.choice(("on", "off"))
        path = f"/api/admin/projects/{project}/features/{flag}/environments/production/{to}"
        self._connection.call("POST", path).expect(200)

    def make_and_remove(self) -> None:
        project, name = f"p{self._random.randrange(PROJECTS):02}", f"passing-{next(self._turn)}"
        path = f"/api/admin/projects/{project}/features"
        self._connection.call("POST", path, {"name": name, "type": "release"}).expect(201)
        strategy = {
            "name": "flexibleRollout",
            "parameters": {"rollout": "50", "stickiness": "default", "groupId": name},
        }
        self._connection.call("POST", f"{path}/{name}/environments/production/strategies", strategy).expect(
            200
        )
        self._connection.call("DELETE", f"{path}/{name}").expect(202)
        self._connection.call("DELETE", f"/api/admin/archive/{name}").expect(200)

    def body(self, project: str) -> dict[str, Any]:
        """As an export has it, each time with other rollouts."""
        rollout = {"rollout": str(next(self._turn) % 101), "stickiness": "default", "groupId": "imported"}
        names = [f"p01-{number:05}" for number in range(IMPORTED)]
        strategies = [
            {"name": "flexibleRollout", "featureName": name, "parameters": rollout} for name in names
        ]
        switches = [
            {"name": name, "featureName": name, "environment": "production", "enabled": True}
            for name in names
        ]
        data = {
            "features": [{"name": name} for name in names],
            "featureStrategies": strategies,
            "tagTypes": [],
        }
        return {
            "project": project,
            "environment": "production",
            "data": data | {"featureEnvironments": switches},
        }

    def import_file(self) -> None:
        self._connection.call("POST", "/api/admin/features-batch/import", self.body("p01")).expect(200)

    def import_refused(self) -> None:
        """These flags are in another project."""
        self._connection.call("POST", "/api/admin/features-batch/import", self.body("p02")).expect(400, 409)


class Reader:
    """Evaluations, and pages of the console, one after the other."""

    def __init__(self, port: int, secrets: dict[str, str], pages: list[str], each: int) -> None:
        self._port, self._secrets = port, secrets
        self._api = Connection(port, Authorization=secrets["admin"])
        self._frontend = Connection(port, Authorization=secrets["frontend"])
        self._ofrep = Connection(port, Authorization=f"Bearer {secrets['p00']}")
        self._console = Connection(port, Cookie=f"sessionid={secrets['session']}")
        self._pages = itertools.cycle(pages)
        self._users = itertools.count()
        self._projects = itertools.cycle(range(PROJECTS))
        self._each = each

    def playground(self) -> None:
        project = f"p{next(self._projects) % 5:02}"
        found = self._api.call("POST", "/api/admin/playground", question([project])).expect(200).json
        if len(found["features"]) < self._each:
            raise Wrong(f"{len(found['features'])} flags of {project}")

    def playground_of_all(self) -> None:
        body = question(["*"]) | {"projects": "*"}
        once(self._port, "POST", "/api/admin/playground", body, Authorization=self._secrets["admin"]).expect(
            200
        )

    def frontend(self) -> None:
        self._frontend.call("GET", f"/api/frontend?userId={next(self._users)}").expect(200)

    def ofrep(self) -> None:
        context = {"context": {"targetingKey": str(next(self._users)), "country": "NO"}}
        self._ofrep.call("POST", "/ofrep/v1/evaluate/flags/p00-00042", context).expect(200)

    def page(self) -> None:
        address = next(self._pages)
        answer = self._console.call("GET", address)
        logged_out = "/login" in answer.headers.get("Location", "")
        if logged_out or answer.status not in (meant_status(address), 302):
            raise Wrong(f"{address}: {answer.status}")

    def metrics(self) -> None:
        once(self._port, "GET", "/metrics", Authorization=f"Bearer {METRICS_TOKEN}").expect(200)

    def refused(self) -> None:
        once(self._port, "GET", "/api/client/features", Authorization="*:production.wrong").expect(401)


def fill(flags: int) -> tuple[dict[str, str], list[str]]:
    """Secrets by name, and the addresses of the pages."""
    from django.test import Client

    from groups.permissions import BuiltIn
    from tests.support.cast import make_token, make_user
    from tests.support.scenery import make_scenery

    admin = make_user("admin", root_role=BuiltIn.ADMIN)
    make_scenery()
    make_large_data(flags)
    browser = Client()
    browser.force_login(admin)
    secrets = {"session": browser.cookies["sessionid"].value, "admin": make_token("admin")}
    for number in range(PROJECTS):
        project = f"p{number:02}"
        secrets[project] = make_token("backend", environment="production", projects=[project])
    for name in ("all", "delta of all"):
        secrets[name] = make_token("backend", environment="production")
    secrets["frontend"] = make_token("frontend", environment="production", projects=["p00"])
    # Of two environments, all projects are more than a page evaluates.
    too_many = re.compile(r"/playground/(\?|who-changes/\?from).*(to|environment)=development(?!.*project=)")
    return secrets, [filled(page) for page in (*PAGES, *LARGE_PAGES) if not too_many.match(page)]


def begin(log: Log, port: int, secrets: dict[str, str], pages: list[str], flags: int) -> None:
    """Every kind of client, with the seconds from one of its requests to the next."""
    each = flags // PROJECTS
    for number in range(POLLED):
        secret = secrets[f"p{number:02}"]
        repeat(log, "SDK poll, a project", 0.5, features(port, secret, packed=number % 2 == 0))
        repeat(log, "SDK delta, a project", 1, delta(port, secret))
    repeat(log, "SDK poll, all projects", 15, features(port, secrets["all"]))
    repeat(log, "SDK poll, all projects, plain", 60, features(port, secrets["all"], packed=False))
    repeat(log, "SDK delta, all projects", 15, delta(port, secrets["delta of all"]))
    Streams(log, port, [secrets[f"p{number:02}"] for number in range(STREAMED)])

    names = [f"p{number:02}-{flag:05}" for number in range(PROJECTS) for flag in range(0, each, 20)]
    applications = [f"application-{number:05}" for number in range(1, APPLICATIONS + 1, 4)]
    for number in range(2):
        reports, others = (Reports(port, secrets["all"], names, applications) for _ in range(2))
        repeat(log, "report of usage", 0.2, reports.metrics)
        repeat(log, "registration", 0.5 + number, others.register)

    reader = Reader(port, secrets, pages, each)
    repeat(log, "playground, a project", 1, reader.playground)
    repeat(log, "playground, all projects", 300, reader.playground_of_all)
    repeat(log, "frontend API", 0.3, reader.frontend)
    repeat(log, "OFREP, a flag", 0.5, reader.ofrep)
    repeat(log, "page of the console", 3, reader.page)
    repeat(log, "scrape of /metrics", 10, reader.metrics)
    repeat(log, "meant: wrong token", 10, reader.refused)

    for kind, every in (
        ("switch", 2),
        ("make_and_remove", 20),
        ("import_file", 60),
        ("import_refused", 120),
    ):
        editor = Editor(port, secrets["admin"], each)
        title = "meant: import refused" if kind == "import_refused" else kind.replace("_", " ")
        repeat(log, title, every, getattr(editor, kind))


def main(minutes: float, flags: int) -> None:
    log = Log()
    with data_directory():
        secrets, pages = fill(flags)
        with started(workers=2, FLAGADMIN_METRICS_TOKEN=METRICS_TOKEN) as (port, group):
            watch = Watch(log, group)
            begin(log, port, secrets, pages, flags)
            watch.run(minutes * 60)
            log.stop.set()
            watch.report()
    sys.exit(1 if log.errors else 0)


if __name__ == "__main__":
    given = [float(argument) for argument in sys.argv[1:]]
    main(given[0] if given else 3, int(given[1]) if len(given) > 1 else FLAGS)
