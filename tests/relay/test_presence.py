"""A relay tells its upstream how it is, and of the relays behind it."""

from pathlib import Path
from typing import Any

import pytest

from relay.health import Presence
from relay.options import Options
from relay.storage import Storage
from tests.support.live_server import wait_until
from tests.support.relay import BACKEND, flag, relaying
from tests.support.upstream import Upstream, make_token, running

pytestmark = pytest.mark.processes


def filled() -> Upstream:
    upstream = Upstream()
    upstream.change(flag("a"))
    upstream.add(make_token(BACKEND, "client", "shop"))
    return upstream


def test_a_report_that_comes_late_replaces_no_later_one(tmp_path: Path) -> None:
    nobody: Any = None
    storage = Storage(tmp_path)
    presence = Presence(
        Options(upstream="http://x", data=tmp_path), storage, nobody, nobody, nobody, nobody, nobody
    )
    for ago, tokens in ((10, 2), (900, 1), (5, 3)):
        presence.take([{"id": "behind", "secondsAgo": ago, "tokens": tokens}])
        assert presence._behind["behind"][1]["tokens"] == max(tokens, 2)
    storage.close()


def test_an_upstream_that_does_not_know_relays_is_asked_once(tmp_path: Path) -> None:
    upstream = filled()
    upstream.knows_relays = False
    with running(upstream), relaying(upstream.port, tmp_path) as relay:
        assert relay.flags(BACKEND) == ["a"]
        wait_until(lambda: "/api/client/relays" in upstream.asked)
        wait_until(lambda: upstream.asked.count("/edge/validate") > 3)
        assert upstream.asked.count("/api/client/relays") == 1
