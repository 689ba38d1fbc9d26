"""Safeguards ask a Prometheus: one number, bounded in time and size, redirects refused."""

import gzip
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests

from releases.models import Safeguard
from releases.plans.due import look_at_due
from releases.safeguards.numbers import MAX_BYTES, PrometheusError, ask_prometheus
from tests.support.for_each import for_each
from tests.support.plans import cart, reload, started
from tests.support.programs import program

NOW = datetime(2026, 11, 24, 8, tzinfo=UTC)


class Answers(BaseHTTPRequestHandler):
    """Answers each query with what `bodies` has for it: bytes, or a status and a header."""

    bodies: dict[str, bytes] = {}
    asked: list[str] = []
    stopped = threading.Event()

    def do_GET(self) -> None:
        self.asked.append(self.path)
        query = next(name for name in self.bodies if f"query={name}&" in self.path)
        if query == "redirect":
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            return
        self.send_response(200)
        if query == "cut":
            self.send_header("Content-Length", "100")
        if query in ("packed", "bomb"):
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        with suppress(OSError):
            while query == "slow" and not self.stopped.wait(0.05):
                self.wfile.write(b" ")
            self.wfile.write(self.bodies[query])

    def log_message(self, *args: Any) -> None:
        pass


def vector(*values: str) -> bytes:
    rows = [{"metric": {}, "value": [1, value]} for value in values]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": rows}}).encode()


@pytest.fixture
def server(settings: Any) -> Iterator[type[Answers]]:
    Answers.stopped.clear()
    Answers.asked, Answers.bodies = [], {
        "one": vector("0.25"),
        "scalar": b'{"status": "success", "data": {"resultType": "scalar", "result": [1, "3"]}}',
        "none": vector(),
        "nan": vector("NaN"),
        "two": vector("1", "2"),
        "wrong": b'{"status": "error", "error": "parse error"}',
        "text": b"<html>",
        "large": b" " * (MAX_BYTES + 1),
        "redirect": b"",
        "cut": b"{",
        "packed": b"not gzip",
        "bomb": gzip.compress(b" " * 50_000_000),
        "slow": b"",
    }  # fmt: skip
    running = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    settings.PROMETHEUS_URL = f"http://127.0.0.1:{running.server_port}"
    yield Answers
    Answers.stopped.set()
    running.shutdown()
    running.server_close()


@for_each(("query", "number"), [("one", 0.25), ("scalar", 3.0), ("none", None), ("nan", None)])
def test_a_query_has_one_number_or_no_data(server, query, number):
    server.asked.clear()
    assert ask_prometheus(query, NOW) == number
    assert server.asked == [f"/api/v1/query?query={query}&time=1795507200.000&timeout=5s"]


@for_each(
    ("query", "why"),
    [
        ("two", "one number"),
        ("wrong", "parse error"),
        ("text", "something else than JSON"),
        ("large", "more than 1 MB"),
        ("redirect", "not followed"),
        ("cut", "cannot be reached"),
        ("packed", "cannot be reached"),
        ("bomb", "more than 1 MB"),
    ],
)
def test_what_is_no_number_says_why(server, query, why):
    server.asked.clear()
    with pytest.raises(PrometheusError, match=why):
        ask_prometheus(query, NOW)
    assert len(server.asked) == 1


def test_an_answer_that_comes_byte_by_byte_is_ended(server, monkeypatch):
    monkeypatch.setattr("releases.safeguards.numbers.READ_SECONDS", 0.3)
    began = time.monotonic()
    with pytest.raises(PrometheusError, match=r"cannot be reached \(Timeout\)"):
        ask_prometheus("slow", NOW)
    assert time.monotonic() - began < 3


def test_a_server_that_is_away_and_none_at_all_say_so(settings):
    settings.PROMETHEUS_URL = "http://127.0.0.1:9"
    with pytest.raises(PrometheusError, match="cannot be reached"):
        ask_prometheus("up", NOW)
    settings.PROMETHEUS_URL = ""
    with pytest.raises(PrometheusError, match="FLAGADMIN_PROMETHEUS_URL"):
        ask_prometheus("up", NOW)


@pytest.mark.django_db(transaction=True)
def test_a_number_above_the_threshold_pauses(server, shop):
    cart(5)
    plan = started(5, 50)
    guard = Safeguard.objects.create(
        plan=plan, source="external", metric="none", title="Errors", threshold=0.2
    )
    plan.__class__.objects.update(look_at=plan.since)
    look_at_due()
    assert reload(plan).state == "running"
    Safeguard.objects.filter(pk=guard.pk).update(metric="one")
    plan.__class__.objects.update(look_at=plan.since)
    look_at_due()
    assert (reload(plan).state, reload(plan).reason) == ("paused", "Errors above 0.2: 0.25 now.")


@pytest.mark.processes
def test_a_real_prometheus_is_asked(settings, tmp_path: Path):
    (tmp_path / "prometheus.yml").write_text("global: {}\n")
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as unused:
        port = unused.server_port
    command = [
        program("prometheus"),
        f"--config.file={tmp_path}/prometheus.yml",
        f"--storage.tsdb.path={tmp_path}/data",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    settings.PROMETHEUS_URL = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        try:
            wait_until_ready(settings.PROMETHEUS_URL)
            now = datetime.now(UTC)
            assert ask_prometheus("vector(0.5)", now) == 0.5
            assert ask_prometheus("1 + 2", now) == 3.0
            assert ask_prometheus("absent_metric", now) is None
            with pytest.raises(PrometheusError, match="refuses the query"):
                ask_prometheus("sum(", now)
        finally:
            process.terminate()


def wait_until_ready(url: str) -> None:
    for _ in range(300):
        try:
            if requests.get(f"{url}/-/ready", timeout=1).status_code == 200:
                return
        except requests.RequestException:
            pass
        time.sleep(0.1)
    raise AssertionError("Prometheus did not become ready")
