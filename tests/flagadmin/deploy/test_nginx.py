"""deploy/nginx.conf in the real nginx, in front of a real server."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.event_stream import Listener
from tests.support.live_server import Client, reserved_port, wait_until
from tests.support.nginx import Nginx, configure, nginx, running_nginx
from tests.support.paths import ROOT
from tests.support.serve import environment, serve, wait_until_it_answers

pytestmark = pytest.mark.processes

FEATURES = "/api/client/features"
SPEC = {"Unleash-Client-Spec": "5.2.0"}
SERVER = {"FLAGADMIN_BEHIND_PROXY": "1", "FLAGADMIN_LOG_LEVEL": "ERROR", "FLAGADMIN_METRICS_TOKEN": "x" * 16}
REQUESTS = STREAMS = 60  # at once, of one address
SOONER = {
    "proxy_cache_valid 200 5s": "proxy_cache_valid 200 1s",
    "proxy_read_timeout 10s": "proxy_read_timeout 4s",
    "limit_conn flagadmin_connections 1000": f"limit_conn flagadmin_connections {REQUESTS}",
    "limit_conn flagadmin_streams 1000": f"limit_conn flagadmin_streams {STREAMS}",
}
# Seconds after which nothing is fresh any more: 1 second, of which nginx counts whole ones, and flagadmin's own second.
FRESH = 3.1
FILL = """
import json
import django
django.setup()
from tests.support.cast import make_project, make_token
from tests.support.flags import make_flag
make_project("shop")
make_flag("here", "default")
make_flag("there", "shop")
def sdk(project):
    return make_token("backend", projects=[project], environment="development")
keys = {"default": sdk("default"), "shop": sdk("shop"), "revoked": sdk("default"), "polled": sdk("default")}
print(json.dumps(keys | {"admin": make_token("admin")}))
"""


@dataclass
class Installation:
    """flagadmin behind nginx, which keeps an answer for one second."""

    front: Nginx
    port: int
    keys: dict[str, str]
    group: int  # of the server's processes
    start: Callable[[], int]
    stop: Callable[[], None]

    def poll(self, key: str, **headers: str) -> Any:
        return self.front.get(FEATURES, Authorization=self.keys.get(key, key), **(SPEC | headers))

    def admin(self, method: str, path: str, body: Any = None) -> None:
        with closing(Client(self.port, self.keys["admin"])) as client:
            status, answer = client.call(method, f"/api/admin/{path}", body)
        assert status in (200, 201), answer


@pytest.fixture(scope="module")
def installed(
    tmp_path_factory: pytest.TempPathFactory, install: Callable[[Path], None]
) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("behind-nginx")
    install(folder / "data")
    variables = environment(folder / "data", DJANGO_SETTINGS_MODULE="flagadmin.settings")
    filled = subprocess.run(
        [sys.executable, "-c", FILL], cwd=ROOT, env=variables, capture_output=True, text=True, check=True
    )
    keys = json.loads(filled.stdout.splitlines()[-1])
    with reserved_port() as port, reserved_port() as front, ExitStack() as running:
        server = ExitStack()

        def start() -> int:
            process = server.enter_context(serve(folder / "data", port, workers=1, **SERVER))
            wait_until_it_answers(port, process)
            return process.pid

        running.callback(server.close)
        group = start()
        proxy = running.enter_context(running_nginx(folder / "nginx", front, [port], SOONER))
        yield Installation(proxy, port, keys, group, start, server.close)


def names(answer: Any) -> list[str]:
    assert answer.status == 200, answer.body
    return [flag["name"] for flag in json.loads(answer.body)["features"]]


def test_debians_nginx_takes_the_configuration(tmp_path: Path) -> None:
    main = configure(tmp_path / "nginx", 8443, [8000, 8001])
    checked = subprocess.run(nginx(main, "-t", "-q"), capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_fifty_clients_ask_upstream_once(installed: Installation) -> None:
    def logged_after(answers: int) -> Counter[str]:
        """nginx logs a request after it has been answered."""
        return wait_until(lambda: (requests := installed.front.requests()).total() >= answers and requests)

    with ThreadPoolExecutor(50) as clients:
        for first in ("MISS 200", "REVALIDATED 304"):
            before, begun = installed.front.requests(), time.monotonic()
            answers = list(clients.map(lambda _: installed.poll("polled"), range(50)))
            assert {answer.status for answer in answers} == {200}
            new = logged_after(before.total() + 50) - before
            # What nginx answers by itself has no upstream status. On a busy machine, 50 requests take more than a second.
            upstream = {request: count for request, count in new.items() if not request.endswith(" -")}
            assert upstream[first] >= 1
            assert set(upstream) <= {first, "REVALIDATED 304"}
            assert sum(upstream.values()) <= 1 + int(time.monotonic() - begun)
            time.sleep(FRESH)


def test_a_client_that_has_the_answer_gets_304_from_the_cache(installed: Installation) -> None:
    etag = installed.poll("default").headers["etag"]

    def hit() -> Any:
        """On a machine that stalls, an answer may no longer be fresh when it is asked for again."""
        answer = installed.poll("default", **{"If-None-Match": etag})
        assert (answer.status, answer.body) == (304, b"")
        return answer.headers["x-cache-status"] == "HIT"

    assert wait_until(hit)


def test_each_token_has_answers_of_its_own(installed: Installation) -> None:
    for _ in range(2):
        assert names(installed.poll("default")) == ["here"]
        assert names(installed.poll("shop")) == ["there"]
        assert installed.poll("*:development.made-up").status == 401
        assert installed.front.get(FEATURES, **SPEC).status == 401


def test_each_encoding_and_specification_has_answers_of_its_own(installed: Installation) -> None:
    for _ in range(2):
        packed = installed.poll("default", **{"Accept-Encoding": "gzip"})
        assert (packed.headers["content-encoding"], packed.body[:2]) == ("gzip", b"\x1f\x8b")
        assert "segments" in json.loads(installed.poll("default").body)
        old = installed.poll("default", **{"Unleash-Client-Spec": "4.1.0"})
        assert "segments" not in json.loads(old.body)


def test_tokens_made_up_by_somebody_are_not_kept(installed: Installation) -> None:
    kept = len(list((installed.front.folder / "cache").rglob("*")))
    for number in range(10):
        assert installed.poll(f"*:development.made-up-{number}").status == 401
    assert len(list((installed.front.folder / "cache").rglob("*"))) == kept


def test_a_change_is_there_when_the_answer_is_no_longer_fresh(installed: Installation) -> None:
    assert names(installed.poll("shop")) == ["there"]
    installed.admin("POST", "projects/shop/features", {"name": "new"})
    time.sleep(FRESH)
    assert names(installed.poll("shop")) == ["new", "there"]


def test_metrics_are_not_for_outside(installed: Installation) -> None:
    assert installed.front.get("/readyz").status == 200
    refused = installed.front.get("/metrics", Authorization=f"Bearer {SERVER['FLAGADMIN_METRICS_TOKEN']}")
    assert (refused.status, "flagadmin" in refused.body.decode()) == (404, False)


def test_streams_pass_events_at_once(installed: Installation) -> None:
    with closing(installed.front.connect()) as connection:
        headers = {"Authorization": installed.keys["shop"], "Accept": "text/event-stream"}
        connection.request("GET", "/api/client/streaming", headers=headers)
        stream = Listener(connection)
        assert stream.next().name == "unleash-connected"
        installed.admin("POST", "projects/shop/features", {"name": "streamed"})
        assert stream.next().kinds == ["feature-updated"]


def test_streams_count_apart_from_other_requests(installed: Installation) -> None:
    """Else the streams of many applications behind one address would have their polls refused."""
    with ExitStack() as opened:
        statuses = []
        for _ in range(STREAMS + 1):
            connection = opened.enter_context(closing(installed.front.connect()))
            connection.request(
                "GET", "/api/client/streaming", headers={"Authorization": installed.keys["shop"]}
            )
            statuses.append(connection.getresponse().status)
        assert statuses == [200] * STREAMS + [429]
        assert installed.poll("shop").status == 200


def test_while_the_server_is_down_all_but_refused_tokens_are_answered(installed: Installation) -> None:
    packed = {"Accept-Encoding": "gzip"}
    assert {installed.poll("revoked", **headers).status for headers in ({}, packed)} == {200}
    assert names(installed.poll("default")) == ["here"]
    installed.admin("DELETE", f"api-tokens/{installed.keys['revoked']}")
    time.sleep(FRESH)
    assert installed.poll("revoked").status == 401
    with ThreadPoolExecutor(20) as clients:  # while one of them asks, the others get no older answer
        assert set(clients.map(lambda _: installed.poll("revoked", **packed).status, range(20))) == {401}

    def check_outage(upstream: str) -> None:
        time.sleep(FRESH)
        before = installed.front.requests()
        answer = installed.poll("default")
        assert (names(answer), answer.headers["x-cache-status"]) == (["here"], "STALE")
        assert wait_until(lambda: installed.front.requests() - before) == {f"STALE {upstream}": 1}
        assert installed.poll("revoked").status == 401

    os.killpg(installed.group, signal.SIGSTOP)  # it hangs
    check_outage("504")
    os.killpg(installed.group, signal.SIGCONT)
    installed.stop()
    check_outage("502")
    assert installed.poll("*:development.made-up").status == 502
    installed.start()
    installed.admin("POST", "projects/default/features", {"name": "afterwards"})
    wait_until(lambda: names(installed.poll("default")) == ["afterwards", "here"])
