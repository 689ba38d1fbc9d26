"""A rolling upgrade: the previous version serves beside this one, which migrates the database that both use.

Its code is packed beside its backup, and runs with the packages of requirements/dev.txt.
"""

import json
import re
import signal
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.metadata import packages_distributions
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_server import PATIENCE, Client, is_ready, reserved_port, wait_until
from tests.support.load import ADMIN, SDK, TOKENS, import_body, report_body
from tests.support.paths import APPS, ROOT
from tests.support.replication import Server, one_server
from tests.support.serve import serve, wait_until_it_answers

[CODE] = Path(__file__).parent.glob("*/code.tar.xz")
# A module that is imported, or an entry of INSTALLED_APPS.
MODULE = re.compile(r'^\s*(?:(?:import|from) |    ")(\w+)', re.MULTILINE)
LOCKED = re.compile(r"^([\w-]+)==", re.MULTILINE)
FLAGS = "/api/admin/projects/default/features"
PLANNED = f"{FLAGS}/flag-1/environments/development"
STRATEGY = {
    "name": "flexibleRollout",
    "parameters": {"rollout": "50", "stickiness": "default", "groupId": "g"},
    "constraints": [{"contextName": "userId", "operator": "IN", "values": ["1", "2"]}],
}
EVALUATED = {"environment": "development", "projects": "*", "context": {"userId": "1"}}

pytestmark = [pytest.mark.processes, pytest.mark.exhaustive]


@pytest.fixture
def database() -> Iterator[Server]:
    with one_server() as server:
        yield server


@pytest.fixture
def serving(database: Server, tmp_path: Path) -> Callable[..., Any]:
    """``serving(port, code=…)``: a server of a machine of its own, as a context manager."""
    variables = {
        "DATABASE_URL": f"postgresql://flagadmin@127.0.0.1:{database.port}/flagadmin",
        "SECRET_KEY": "the same long secret key on all machines",
    }
    return lambda port, **code: serve(tmp_path / str(port), port, workers=1, **code, **variables, **TOKENS)


@pytest.fixture
def previous(tmp_path: Path) -> Path:
    folder = tmp_path / "previous"
    folder.mkdir()
    subprocess.run(["tar", "-xf", CODE, "-C", folder], check=True)
    return folder


class Everybody:
    """Asks for everything that is asked for during an upgrade. Each request must be answered as it should be.

    A 503 says that a migration has locked a table for long: clients ask again, so does this.
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self.reports = 0

    def ask(self, port: int) -> None:
        number = next(self._numbers)
        flag = f"{FLAGS}/flag-{number}"
        self._ask(port, ADMIN, 201, "POST", FLAGS, {"name": f"flag-{number}", "type": "release"})
        self._ask(port, ADMIN, 200, "POST", f"{flag}/environments/development/strategies", STRATEGY)
        self._ask(port, ADMIN, 200, "POST", f"{flag}/environments/development/on")
        self._ask(port, ADMIN, 200, "POST", "/api/admin/features-batch/import", import_body(number))
        self._ask(port, ADMIN, 200, "GET", "/api/admin/events")
        self._ask(port, SDK, 202, "POST", "/api/client/metrics", report_body())
        self.reports += 1
        wait_until(lambda: f"flag-{number}" in features(port))
        assert f"flag-{number}" in self.evaluate(port)

    def evaluate(self, port: int) -> dict[str, bool]:
        answer = self._ask(port, ADMIN, 200, "POST", "/api/admin/playground", EVALUATED)
        return {flag["name"]: flag["isEnabled"] for flag in json.loads(answer)["features"]}

    def call(self, port: int, status: int, method: str, path: str, body: Any = None) -> bytes:
        """As an admin."""
        return self._ask(port, ADMIN, status, method, path, body)

    def _ask(self, port: int, secret: str, status: int, method: str, path: str, body: Any = None) -> bytes:
        responses: list[tuple[int, bytes]] = []

        def answered() -> bool:
            with closing(Client(port, secret)) as client:
                responses.append(client.call(method, path, body))
            return responses[-1][0] != 503

        wait_until(answered)
        assert responses[-1][0] == status, (path, responses[-1])
        return responses[-1][1]


def migrations_of(code: Path) -> set[tuple[str, str]]:
    """The application's folder and the name of each. None is newer right after a release."""
    files = [path for app in APPS for path in (code / app).rglob("migrations/0*.py")]
    return {(path.parts[-3], path.stem) for path in files}


def features(port: int) -> dict[str, Any]:
    """What SDKs get, by name."""
    with closing(Client(port, SDK)) as client:
        status, answer = client.call("GET", "/api/client/features")
    assert status == 200, answer
    return {flag["name"]: flag for flag in json.loads(answer)["features"]}


def start_release_plan(everybody: Everybody, port: int) -> dict[str, Any]:
    """Of a flag of the previous version, with a safeguard, at its first step."""
    [strategy] = json.loads(everybody.call(port, 200, "GET", f"{PLANNED}/strategies"))
    body = {"steps": {"strategyId": strategy["id"], "strategy": {}, "rollouts": [20, 100]}}
    plan = json.loads(everybody.call(port, 200, "POST", f"{PLANNED}/release-plans", body))
    metric = {"metricName": "errors", "timeRange": "hour", "aggregationMode": "rps"}
    safeguard = {"impactMetric": metric, "triggerCondition": {"operator": ">", "threshold": 1}}
    everybody.call(port, 204, "PUT", f"{PLANNED}/release-plans/{plan['id']}/safeguards", safeguard)
    everybody.call(port, 204, "PUT", f"{PLANNED}/safeguards", safeguard)
    start_milestone(everybody, port, plan, 0)
    return dict(plan)


def start_milestone(everybody: Everybody, port: int, plan: dict[str, Any], number: int) -> None:
    milestone = plan["milestones"][number]["id"]
    path = f"{PLANNED}/release-plans/{plan['id']}/milestones/{milestone}/start"
    everybody.call(port, 200, "POST", path)


def read_share(port: int) -> str:
    [strategy] = features(port)["flag-1"]["strategies"]
    return str(strategy["parameters"]["rollout"])


def test_the_previous_version_serves_while_this_one_migrates_and_beside_it(
    serving: Callable[..., Any], previous: Path, database: Server
) -> None:
    everybody = Everybody()
    with reserved_port() as old, reserved_port() as new, serving(old, code=previous) as leaving:
        wait_until_it_answers(old, leaving)
        with closing(Client(old, ADMIN)) as client:
            assert client.call("POST", FLAGS, {"name": "checkout", "type": "release"})[0] == 201
        everybody.ask(old)

        def applied_migrations() -> set[str]:
            return set(database.ask("SELECT app, name FROM django_migrations", "flagadmin").splitlines())

        before = applied_migrations()

        with serving(new) as coming:

            def is_here_after_asking() -> bool:
                everybody.ask(old)
                return is_ready(new) or coming.poll() is not None

            wait_until(is_here_after_asking)
            assert coming.poll() is None, coming.stdout.read()
            newer = migrations_of(ROOT) - migrations_of(previous)
            assert len(applied_migrations() - before) == len(newer)

            for port in (old, new, old, new):
                everybody.ask(port)
            wait_until(lambda: features(new) == features(old))
            assert everybody.evaluate(new) == everybody.evaluate(old)
            plan = start_release_plan(everybody, new)
            for port in (old, new):
                wait_until(lambda port=port: read_share(port) == "20")
            everybody.call(old, 200, "POST", f"{PLANNED}/off")
            everybody.call(old, 200, "POST", f"{PLANNED}/on")

            leaving.send_signal(signal.SIGTERM)
            assert leaving.wait(PATIENCE) == 0, leaving.stdout.read()
            if newer:
                with serving(old, code=previous) as again:
                    assert again.wait(PATIENCE) != 0
                    assert "A newer version of flagadmin has migrated the database" in again.stdout.read()
            everybody.ask(new)
            start_milestone(everybody, new, plan, 1)
            wait_until(lambda: read_share(new) == "100")
    counted = database.ask("SELECT sum(yes) FROM projects_usagehour", "flagadmin")
    assert int(counted) == everybody.reports


def test_the_code_is_that_of_the_latest_release() -> None:
    releases = [path.parent.name for path in Path(__file__).parent.glob("*/backup")]
    assert CODE.parent.name == max(releases, key=lambda name: [int(part) for part in name.split(".")])


def test_the_packages_of_its_code_are_locked() -> None:
    """An environment may still have one that no longer is: the code would run nowhere else."""
    with tarfile.open(CODE) as archive:
        files = [archive.extractfile(member) for member in archive if member.name.endswith(".py")]
        modules = {name for file in files if file for name in MODULE.findall(file.read().decode())}
    locked = set(LOCKED.findall((ROOT / "requirements" / "dev.txt").read_text()))
    installed = packages_distributions()
    missing = {
        module
        for module in modules & installed.keys()
        if locked.isdisjoint(re.sub(r"[-_.]+", "-", name).lower() for name in installed[module])
    }
    assert missing == set()
