"""What requests that do little cost: CPU of the server's and PostgreSQL's processes, beside version 1.0 in the same run.

``python -m tests.benchmarks.bench_fixed_cost [REQUESTS [now]]`` (default: 300 of each kind to each version, in turns; with
``now``, only to this version). Figures are the least of all turns, in rounds of the calibration loop. Both versions run one
worker, have the same few objects, and are asked by a service account with the root role Admin. What the processes need
without requests is measured at the end; it is part of the figures, more of it on a busy machine.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.support.cpu import Calibration
from tests.support.live_server import PATIENCE, Client, reserved_port
from tests.support.load import ADMIN
from tests.support.paths import ROOT
from tests.support.replication import one_server
from tests.support.serve import serve, wait_until_it_answers

CODE = Path(__file__).with_name("version_1.0.0.tar.xz")
TURNS = 6
IDLE_SECONDS = 5
PASSWORD = "correct horse battery"
SHOP = "/api/admin/projects/shop"
FLAG = f"{SHOP}/features/checkout"
STRATEGY = {
    "name": "flexibleRollout",
    "parameters": {"rollout": "50", "stickiness": "default", "groupId": "checkout"},
    "constraints": [{"contextName": "userId", "operator": "IN", "values": ["1", "2"]}],
}
SETUP: tuple[tuple[str, str, Any], ...] = (
    ("POST", "/api/admin/projects", {"id": "empty", "name": "Empty"}),
    ("POST", "/api/admin/projects", {"id": "shop", "name": "Shop"}),
    ("POST", "/api/admin/segments", {"name": "testers", "constraints": STRATEGY["constraints"]}),
    ("POST", f"{SHOP}/features", {"name": "checkout", "type": "release"}),
    ("POST", f"{SHOP}/features", {"name": "search", "type": "experiment"}),
    ("POST", f"{FLAG}/environments/development/strategies", STRATEGY),
    ("POST", f"{FLAG}/environments/production/strategies", STRATEGY),
    ("POST", f"{FLAG}/environments/development/on", None),
)
EVALUATED = {"environment": "development", "projects": ["empty"], "context": {"userId": "1"}}
# The sum of the first six is what has a limit.
LIMITED = 6
READS: tuple[tuple[str, str, str, Any], ...] = (
    ("playground of an empty project", "POST", "/api/admin/playground", EVALUATED),
    ("one flag's document", "GET", FLAG, None),
    ("projects", "GET", "/api/admin/projects", None),
    ("environments", "GET", "/api/admin/environments", None),
    ("applications of an empty project", "GET", "/api/admin/projects/empty/applications", None),
    ("tag types", "GET", "/api/admin/tag-types", None),
    ("flags of a project", "GET", f"{SHOP}/features", None),
    ("events", "GET", "/api/admin/events?limit=10", None),
    ("context fields", "GET", "/api/admin/context", None),
    ("segments", "GET", "/api/admin/segments", None),
)
PAGES = (("page of a project", "/projects/shop/"), ("page of a flag", "/projects/shop/features/checkout/"))

Ask = Callable[[], None]


class Version:
    """A running server, with the same objects as the other one."""

    def __init__(self, port: int, group: int, database: int) -> None:
        """``group`` is the process group of the server, ``database`` the id of PostgreSQL's first process."""
        self.port, self._group, self._database = port, group, database
        self._spent: dict[tuple[int, bool], int] = {}
        with closing(Client(port, ADMIN)) as client:
            for method, path, body in SETUP:
                request(client, method, path, body)
            account = {"name": "Service", "username": "service", "rootRole": 1}
            made = request(client, "POST", "/api/admin/service-account", account)
            tokens = f"/api/admin/service-account/{made['id']}/token"
            expiry = "2099-01-01T00:00:00.000Z"
            token = request(client, "POST", tokens, {"description": "measures", "expiresAt": expiry})
            person = {"username": "person", "name": "Person", "rootRole": 1, "password": PASSWORD}
            request(client, "POST", "/api/admin/user-admin", person | {"sendEmail": False})
        self._client = Client(port, token["secret"])
        self._numbers = count(1)
        self._browser = Browser(port)

    def idle(self) -> list[float]:
        """CPU a second without requests, of the server and of PostgreSQL."""
        return [each / IDLE_SECONDS for each in self.cpu(lambda: time.sleep(IDLE_SECONDS), 1)]

    def kinds(self) -> dict[str, Ask]:
        reads = {
            name: lambda method=method, path=path, body=body: request(self._client, method, path, body)
            for name, method, path, body in READS
        }
        writes = {"write: a flag's description": self._describe, "write: a flag's toggle": self._toggle}
        pages = {name: lambda path=path: self._browser.get(path) for name, path in PAGES}
        return reads | writes | pages

    def _describe(self) -> None:
        request(self._client, "PUT", FLAG, {"type": "release", "description": f"{next(self._numbers)}"})

    def _toggle(self) -> None:
        state = "on" if next(self._numbers) % 2 else "off"
        request(self._client, "POST", f"{FLAG}/environments/production/{state}")

    def cpu(self, ask: Ask, times: int) -> list[float]:
        """Seconds of CPU a call, of the server's processes and of PostgreSQL's."""
        before = self._nanoseconds()
        for _ in range(times):
            ask()
        return [(now - then) / 1e9 / times for now, then in zip(self._nanoseconds(), before, strict=True)]

    def _nanoseconds(self) -> list[int]:
        """Of all threads, those of ended processes included: `/proc/PID/stat` counts in steps of 10 ms."""
        for process in Path("/proc").glob("[0-9]*"):
            try:
                parent, group = map(int, (process / "stat").read_text().rpartition(")")[2].split()[1:3])
                if group == self._group or parent == self._database:
                    self._spent[int(process.name), group != self._group] = sum(
                        int(task.read_text().split()[0]) for task in process.glob("task/*/schedstat")
                    )
            except OSError:
                continue  # it has ended
        return [
            sum(spent for (_, of_database), spent in self._spent.items() if of_database == whose)
            for whose in (False, True)
        ]


class Browser:
    """A session of the console, on one connection."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._cookies: SimpleCookie = SimpleCookie()

    def _log_in(self) -> None:
        found = re.search(rb'name="csrfmiddlewaretoken" value="(\w+)"', self._ask("GET", "/login/", 200))
        assert found
        form = {"csrfmiddlewaretoken": found[1].decode(), "username": "person", "password": PASSWORD}
        self._ask("POST", "/login/", 302, urlencode(form))

    def get(self, path: str) -> None:
        if not self._cookies:  # not earlier: the connection would have been closed meanwhile
            self._log_in()
        self._ask("GET", path, 200)

    def _ask(self, method: str, path: str, status: int, body: str | None = None) -> bytes:
        headers = {"Cookie": "; ".join(f"{name}={each.value}" for name, each in self._cookies.items())}
        if body:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        for cookie in response.headers.get_all("Set-Cookie", []):
            self._cookies.load(cookie)
        page = response.read()
        assert response.status == status, (path, response.status, page[:500])
        return page


def request(client: Client, method: str, path: str, body: Any = None) -> Any:
    status, answer = client.call(method, path, body)
    assert status < 300, (method, path, status, answer[:500])
    return json.loads(answer) if answer else None


@contextmanager
def version(code: Path) -> Iterator[Version]:
    with one_server() as database, tempfile.TemporaryDirectory() as data, reserved_port() as port:
        variables = {
            "DATABASE_URL": f"postgresql://flagadmin@127.0.0.1:{database.port}/flagadmin",
            "SECRET_KEY": "the same on all machines, and long",
            "INIT_ADMIN_API_TOKENS": ADMIN,
            "FLAGADMIN_LOG_LEVEL": "ERROR",
        }
        with serve(Path(data), port, workers=1, code=code, **variables) as process:
            wait_until_it_answers(port, process)
            postmaster = (database.folder / "postmaster.pid").read_text().split()[0]
            yield Version(port, process.pid, int(postmaster))


def main(requests: int = 300, *only: str) -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        subprocess.run(["tar", "-xf", CODE, "-C", folder], check=True)
        versions = [stack.enter_context(version(code)) for code in ([] if only else [folder]) + [ROOT]]
        kinds = [each.kinds() for each in versions]
        sums = [0.0 for _ in versions]
        loop = Calibration().seconds_of_a_round()
        print(
            f"rounds of {loop * 1000:.2f} ms a request: server + PostgreSQL, of {'1.0 and ' if not only else ''}now"
        )
        for position, name in enumerate(kinds[0]):
            spent = measure(versions, [each[name] for each in kinds], requests, loop)
            print(f"{name:34}{''.join(map(show, spent))}", flush=True)
            if position < LIMITED:
                sums = [total + sum(each) for total, each in zip(sums, spent, strict=True)]
        print(f"{f'sum of the first {LIMITED}':34}{''.join(f'{each:24.2f}' for each in sums)}")
        idle = [[each / loop for each in one.idle()] for one in versions]
        print(f"{'without requests, a second':34}{''.join(map(show, idle))}")


def measure(versions: list[Version], asks: list[Ask], requests: int, loop: float) -> list[list[float]]:
    """Rounds a request, of each version: of the server and of PostgreSQL in the cheapest turn."""
    turns: list[list[list[float]]] = [[] for _ in versions]
    for each, ask in zip(versions, asks, strict=True):
        each.cpu(ask, 20)
    for _ in range(TURNS):
        for its_turns, each, ask in zip(turns, versions, asks, strict=True):
            its_turns.append([cpu / loop for cpu in each.cpu(ask, max(1, requests // TURNS))])
    return [min(its_turns, key=sum) for its_turns in turns]


def show(spent: list[float]) -> str:
    return f"{sum(spent):9.3f} ={spent[0]:6.3f} +{spent[1]:6.3f}"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
