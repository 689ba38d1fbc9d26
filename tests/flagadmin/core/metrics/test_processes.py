"""/metrics of a real server: all processes together, read by the real Prometheus."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from tests.support.live_server import Client, reserved_port, wait_until
from tests.support.metrics import Values, values_of
from tests.support.paths import ROOT
from tests.support.programs import program
from tests.support.served import METRICS, Served

pytestmark = pytest.mark.processes

RULES = ROOT / "deploy" / "prometheus-alerts.yml"
ALIVE = 'flagadmin_requests_total{method="GET",route="healthz",status="200"}'
PROCESSES = {"main-1", "worker-1", "worker-2"}
REFUSED = 'flagadmin_requests_total{method="GET",route="api/client/features",status="401"}'


def read(port: int) -> str:
    with closing(Client(port, f"Bearer {METRICS}")) as client:
        status, body = client.call("GET", "/metrics")
    assert status == 200, body
    return body.decode()


def processes(values: Values) -> set[str]:
    begin = "flagadmin_resident_memory_bytes{process="
    return {name.removeprefix(begin).strip('"}') for name in values if name.startswith(begin)}


def test_all_processes_count_together_and_nothing_is_lost_with_a_worker(served: Served) -> None:
    port = served.port
    wait_until(lambda: processes(values_of(read(port))) == PROCESSES)
    before = values_of(read(port))
    for _ in range(40):  # connections of their own, so that both workers get some
        with closing(Client(port)) as client:
            assert client.call("GET", "/api/client/features")[0] == 401
            # The first by Django, the others in the event loop.
            assert client.call("GET", "/healthz")[0] == 200
    text = read(port)
    assert {name: values_of(text)[name] - before.get(name, 0) for name in (REFUSED, ALIVE)} == {
        REFUSED: 40,
        ALIVE: 40,
    }
    checked = subprocess.run(
        [program("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    served.kill(served.workers()[0])
    wait_until(lambda: processes(after_a_kill(port)) == PROCESSES)
    assert wait_until(lambda: after_a_kill(port))[REFUSED] - before.get(REFUSED, 0) == 40


def test_processes_that_help_a_worker_leave_no_files(served: Served) -> None:
    body = {
        "project": "default",
        "environment": "development",
        "data": {"features": [{"name": "f"}], "featureStrategies": [], "tagTypes": []},
    }
    served.admin("POST", "features-batch/import", body)
    folder = served.data_dir / "metrics" / str(served.port)
    assert {path.stem.rpartition("_")[2] for path in folder.iterdir()} == PROCESSES


def after_a_kill(port: int) -> Values:
    """Asks again if the connection was one of the killed worker's."""
    with suppress(OSError):
        return values_of(read(port))
    return {}


@pytest.fixture
def ask(served: Served, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Asks a Prometheus that scrapes the server as docs/operations/monitor.md says, and has the alerts of deploy/."""
    documented = (ROOT / "docs" / "operations" / "monitor.md").read_text().partition("## Monitoring")[2]
    config = yaml.safe_load(documented.partition("```yaml\n")[2].partition("```")[0])
    job = config["scrape_configs"][0]
    job["authorization"]["credentials_file"] = str(tmp_path / "token")
    job["static_configs"] = [{"targets": [f"127.0.0.1:{served.port}"]}]
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(RULES)]
    (tmp_path / "token").write_text(METRICS)
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    with reserved_port() as port:
        options = {
            "config.file": tmp_path / "prometheus.yml",
            "storage.tsdb.path": tmp_path / "series",
            "web.listen-address": f"127.0.0.1:{port}",
            "log.level": "error",
        }
        command = [program("prometheus"), *[f"--{name}={value}" for name, value in options.items()]]
        with subprocess.Popen(command, cwd=tmp_path) as prometheus:

            def call(path: str, **query: str) -> Any:
                with closing(Client(port)) as client:
                    status, body = client.call("GET", f"/api/v1/{path}?{urlencode(query)}")
                assert status == 200, body
                return json.loads(body)["data"]

            try:
                wait_until(lambda: _answers(port) or prometheus.poll() is not None)
                yield call
            finally:
                prometheus.terminate()


def _answers(port: int) -> bool:
    with suppress(OSError), closing(Client(port)) as client:
        return client.call("GET", "/-/ready")[0] == 200
    return False


def test_prometheus_scrapes_it(ask: Callable[..., Any]) -> None:
    query = 'sum(flagadmin_requests_total{job="flagadmin", route="metrics", status="200"}) > 1'
    wait_until(lambda: ask("query", query=query)["result"])
    assert [target["health"] for target in ask("targets")["activeTargets"]] == ["up"]
    rules = wait_until(lambda: _evaluated(ask("rules")))
    assert {rule["health"] for rule in rules} == {"ok"}
    assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []


def _evaluated(found: Any) -> list[Any]:
    """All rules, once they have been evaluated."""
    rules = [rule for group in found["groups"] for rule in group["rules"]]
    return [] if any(rule["health"] == "unknown" for rule in rules) else rules
