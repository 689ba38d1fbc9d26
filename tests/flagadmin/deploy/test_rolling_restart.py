"""deploy/rolling-restart.sh: installations behind nginx restart one after the other, and no request fails."""

import os
import shlex
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.support.live_server import PATIENCE, Client, reserved_port, wait_until
from tests.support.load import ADMIN, TOKENS, Load, evaluating, polling, polling_delta, reporting, toggling
from tests.support.nginx import nginx, running_nginx
from tests.support.paths import ROOT
from tests.support.programs import program
from tests.support.replication import migrated_server
from tests.support.serve import serve, wait_until_it_answers

pytestmark = [pytest.mark.processes, pytest.mark.exhaustive]

GOOD = b'{"health": "GOOD"}'
REQUESTS = (polling, polling_delta, reporting, evaluating, toggling)
LOADS = 2  # of each request


class Service:
    """An installation that a command of the shell restarts, as systemctl would."""

    def __init__(self, folder: Path, port: int, **variables: str) -> None:
        self.address = f"127.0.0.1:{port}"
        self._folder, self._port, self._variables = folder, port, variables
        self._running = ExitStack()
        self._restarts = folder.with_suffix(".restart")
        os.mkfifo(self._restarts)
        # The command returns once this end has been opened, which is after the restart.
        self._restarted = folder.with_suffix(".restarted")
        os.mkfifo(self._restarted)
        self.command = f"echo restart > {self._restarts} && cat {self._restarted}"
        self.start()
        threading.Thread(target=self._restart_on_command, daemon=True).start()

    def start(self) -> None:
        serving = serve(self._folder, self._port, workers=1, **self._variables)
        self._process = self._running.enter_context(serving)

    def wait(self) -> None:
        wait_until_it_answers(self._port, self._process)

    def kill(self) -> None:
        self._running.close()

    def _restart_on_command(self) -> None:
        while self._restarts.read_text() == "restart\n":
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(PATIENCE)
            self.start()
            self._restarted.write_text("")


@pytest.fixture
def services(tmp_path: Path, install: Callable[[Path], None]) -> Iterator[list[Service]]:
    with migrated_server(install) as database, ExitStack() as running:
        variables = TOKENS | {
            "DATABASE_URL": f"postgresql://flagadmin@127.0.0.1:{database.port}/flagadmin",
            "SECRET_KEY": "the same long secret key on all machines",
            "FLAGADMIN_BEHIND_PROXY": "1",
            "FLAGADMIN_LOG_LEVEL": "ERROR",
        }
        ports = [running.enter_context(reserved_port()) for _ in range(2)]
        folders = [tmp_path / f"data-{port}" for port in ports]
        for folder in folders:
            install(folder)
        services = [Service(folder, port, **variables) for folder, port in zip(folders, ports, strict=True)]
        for service in services:
            running.callback(service.kill)
        for service in services:
            service.wait()
        with closing(Client(ports[0], ADMIN)) as admin:
            created = admin.call("POST", "/api/admin/projects/default/features", {"name": "checkout"})
        assert created[0] == 201, created
        yield services


def restart(conf: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    program("curl")
    return subprocess.run(
        ["sh", str(ROOT / "deploy" / "rolling-restart.sh"), *words],
        env=os.environ | {"NGINX_CONF": str(conf), "NGINX_COMMAND": "true"} | variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def arguments(services: Sequence["Service | Installation"]) -> list[str]:
    return [word for service in services for word in (service.address, service.command)]


def test_no_request_fails(services: list[Service], tmp_path: Path) -> None:
    ports = [int(service.address.rpartition(":")[2]) for service in services]
    folder = tmp_path / "nginx"
    with reserved_port() as front, running_nginx(folder, front, ports), ExitStack() as running:
        conf, command = folder / "flagadmin.conf", nginx(folder / "nginx.conf")
        before = conf.read_text()
        loads = [Load(front, request) for request in REQUESTS for _ in range(LOADS)]
        for load in loads:
            load.start()
            running.callback(load.stop)
        done = restart(conf, *arguments(services), NGINX_COMMAND=shlex.join(command))
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        for load in loads:
            load.stop()
        assert conf.read_text() == before
    answers = Counter(answer.status for load in loads for answer in load.answers)
    failed = [answer for load in loads for answer in load.answers if not answer.succeeded]
    assert answers.keys() <= {200, 202, 304}, (answers, failed)


class Installation(HTTPServer):
    """Answers /readyz as told, and notes when it was asked to restart."""

    def __init__(self, folder: Path) -> None:
        self.health = GOOD
        super().__init__(("127.0.0.1", 0), Answering)
        self.address = f"127.0.0.1:{self.server_port}"
        self.restarts = folder / str(self.server_port)
        self.command = f"date +%s.%N >> {self.restarts}"

    @property
    def restarted(self) -> list[float]:
        return [float(line) for line in self.restarts.read_text().split()] if self.restarts.exists() else []


class Answering(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Installation)
        assert (self.path, self.headers["Host"]) == ("/readyz", "127.0.0.1")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.server.health)

    def log_message(self, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[list[Installation]]:
    with Installation(tmp_path) as first, Installation(tmp_path) as second:
        for server in (first, second):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        yield [first, second]
        first.shutdown()
        second.shutdown()


@pytest.fixture
def conf(pair: list[Installation], tmp_path: Path) -> Path:
    lines = [
        f"    server {installation.address}{options};\n"
        for options in (" fail_timeout=5s", " max_fails=0 backup", "")
        for installation in pair
    ]
    conf = tmp_path / "flagadmin.conf"
    conf.write_text("".join(lines))
    conf.chmod(0o640)
    return conf


def test_an_installation_is_down_for_nginx_while_it_restarts(pair: list[Installation], conf: Path) -> None:
    before = conf.read_text()
    for installation in pair:
        installation.command += f"; cp {conf} {installation.restarts}.conf"
    done = restart(conf, *arguments(pair), DRAIN_SECONDS="0")
    assert (done.returncode, done.stderr) == (0, "")
    for installation in pair:
        then = installation.restarts.with_suffix(".conf").read_text()
        down = [line.split()[1] for line in then.splitlines() if line.endswith(" down;")]
        assert down == [installation.address] * 3
    assert conf.read_text() == before
    assert conf.stat().st_mode & 0o777 == 0o640


def test_nginx_gets_time_for_what_it_has_sent(pair: list[Installation], conf: Path) -> None:
    started = time.time()
    assert restart(conf, *arguments(pair), DRAIN_SECONDS="1").returncode == 0
    ([first], [second]) = (installation.restarted for installation in pair)
    assert first - started >= 1
    assert second - first >= 1


@pytest.mark.parametrize("health", [b'{"health": "DEGRADED"}', b""])
def test_nothing_is_restarted_if_one_is_not_good(pair: list[Installation], conf: Path, health: bytes) -> None:
    pair[1].health, before = health, conf.read_text()
    done = restart(conf, *arguments(pair))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{pair[1].address} is not ready: nothing was restarted." in done.stderr
    assert (pair[0].restarted, conf.read_text()) == ([], before)


def test_addresses_must_be_those_of_the_configuration(pair: list[Installation], conf: Path) -> None:
    conf.write_text(conf.read_text().replace(pair[1].address, f"{pair[1].address}0"))
    done = restart(conf, *arguments(pair))
    assert f'has no line "server {pair[1].address}": nothing was restarted.' in done.stderr
    assert (done.returncode, pair[0].restarted) == (1, [])


def test_the_others_are_left_alone_if_one_does_not_come_back(pair: list[Installation], conf: Path) -> None:
    pair[0].command += "; exit 3"
    done = restart(conf, *arguments(pair), DRAIN_SECONDS="0")
    assert f"Restarting {pair[0].address} failed. It stays down in {conf}" in done.stderr
    assert (done.returncode, pair[1].restarted) == (1, [])
    second_run = restart(conf, *arguments(pair))
    assert f"{pair[0].address} is down in {conf}: nothing was restarted." in second_run.stderr


def test_an_installation_that_is_not_ready_in_time_ends_it(pair: list[Installation], conf: Path) -> None:
    def turn_bad() -> None:
        wait_until(lambda: pair[0].restarted)
        pair[0].health = b""

    pair[0].command += "; sleep 0.5"
    threading.Thread(target=turn_bad, daemon=True).start()
    done = restart(conf, *arguments(pair), DRAIN_SECONDS="0", READY_SECONDS="1")
    assert f"{pair[0].address} is not ready. It stays down in {conf}" in done.stderr
    assert (done.returncode, pair[1].restarted) == (1, [])


@pytest.mark.parametrize("words", [(), ("app1:8000", "true"), ("app1:8000", "true", "app2:8000")])
def test_usage(tmp_path: Path, words: Sequence[str]) -> None:
    done = restart(tmp_path / "none", *words)
    assert done.returncode == 1
    assert "Usage: " in done.stderr
