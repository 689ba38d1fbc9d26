"""A relay whose upstream is away, slow or lies serves what it knew, and never refuses because it could not ask."""

import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from relay.storage import Storage
from tests.support.live_server import wait_until
from tests.support.relay import BACKEND, WEB, Relay, flag, relaying
from tests.support.upstream import Upstream, make_token, running

pytestmark = pytest.mark.processes


def filled() -> Upstream:
    upstream = Upstream()
    upstream.change(flag("a"))
    upstream.add(make_token(BACKEND, "client", "shop"), make_token(WEB, "frontend", "shop"))
    return upstream


def names(relay: Relay) -> Any:
    status, body = relay.get("/api/frontend", WEB)
    return [each["name"] for each in body["toggles"]] if status == 200 else status


def test_a_relay_starts_from_its_disk(tmp_path: Path) -> None:
    upstream = filled()
    with running(upstream):
        port = upstream.port
        with relaying(port, tmp_path / "data") as relay:
            assert (relay.flags(BACKEND), names(relay)) == (["a"], ["a"])
    for path in [tmp_path / "data", *(tmp_path / "data").iterdir()]:
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path
    with relaying(port, tmp_path / "data") as relay:
        assert (relay.flags(BACKEND), names(relay)) == (["a"], ["a"])
        assert relay.flags("shop:development.another-secret") == 503
        assert relay.get("/ready")[0] == 200
        assert wait_until(lambda: relay.health()["health"] == "DEGRADED")
        assert wait_until(lambda: relay.health()["flagsAgeSeconds"] >= 1)
        upstream.change(flag("b"))
        with running(upstream, port):
            wait_until(lambda: relay.flags(BACKEND) == ["b"])
            assert wait_until(lambda: relay.health()["health"] == "GOOD")


def test_a_relay_that_has_never_reached_its_upstream_says_so(tmp_path: Path) -> None:
    upstream = filled()
    with running(upstream):
        port = upstream.port
    with relaying(port, tmp_path, "--token", BACKEND) as relay:
        assert wait_until(lambda: relay.health()["health"] == "DEGRADED")
        assert "cannot be asked" in relay.health()["faults"][0]
        assert wait_until(lambda: relay.health()["secondsWithoutUpstream"] >= 2)
        with running(upstream, port):
            assert wait_until(lambda: relay.health()["health"] == "GOOD")
            assert relay.flags(BACKEND) == ["a"]


def test_an_upstream_that_fails_changes_nothing_and_one_that_refuses_a_token_ends_it(tmp_path: Path) -> None:
    upstream = filled()
    with running(upstream), relaying(upstream.port, tmp_path) as relay:
        for mode in ("hanging", "html", "refusing", 500, 401, 404, 302):
            wait_until(lambda: (relay.flags(BACKEND), names(relay)) == (["a"], ["a"]), f"before {mode}, a")
            upstream.mode = mode
            wait_until(lambda: "faults" in relay.health(), f"{mode}: a fault")
            assert (relay.flags(BACKEND), names(relay)) == (["a"], ["a"]), mode
            if mode != "refusing":
                asked = {"tokens": [BACKEND, "shop:development.another-secret"]}
                assert relay.flags("shop:development.another-secret") == 503, mode
                assert relay.call("POST", "/edge/validate", body=asked)[0] == 503, mode
            upstream.mode = "right"
            upstream.change(flag("b"))
            wait_until(lambda: relay.flags(BACKEND) == ["b"], f"after {mode}, b")
            wait_until(lambda: "faults" not in relay.health(), f"after {mode}, health")
            upstream.change(flag("a"))
        del upstream.tokens[BACKEND]
        wait_until(lambda: relay.flags(BACKEND) == 401)
        wait_until(lambda: not list(tmp_path.glob("flags-*")))


def test_a_stream_says_at_once_what_a_poll_would_say_later(tmp_path: Path) -> None:
    upstream = filled()
    with running(upstream), relaying(upstream.port, tmp_path, "--poll-seconds", "3600") as relay:
        assert relay.flags(BACKEND) == ["a"]
        wait_until(lambda: "/api/client/streaming" in upstream.asked)
        upstream.change(flag("b"))
        wait_until(lambda: relay.flags(BACKEND) == ["b"])
        upstream.revoke(BACKEND)
        wait_until(lambda: relay.flags(BACKEND) == 401)


def test_a_directory_has_one_relay(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "flagadmin", "relay", "--upstream", "http://127.0.0.1:9", "--data"]
    storage = Storage(tmp_path)
    second = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False)
    storage.close()
    assert (second.returncode, second.stderr) == (
        1,
        f"The data directory cannot be used: {tmp_path} is used by another relay.\n",
    )
