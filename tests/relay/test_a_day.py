"""A day of a relay in a moment: flags change every hour, the upstream is away for hours, and the clock jumps."""

import asyncio
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from relay.copy import SOON, Copy
from relay.health import Health
from relay.options import Options
from relay.reports import ID_HEADER, Reports
from relay.storage import Storage
from relay.tokens import Answer, Tokens, UpstreamFailed
from tests.support.quick_loop import run_quickly
from tests.support.relay import BACKEND, flag
from tests.support.upstream import make_token

HOUR = 3_600.0
POLL, REPORT = 60.0, 300.0  # seconds
AWAY = range(9, 14)  # hours in which the upstream is
JUMPS = {
    3: 86_400.0,
    6: -3 * 86_400.0,
    10: 7 * 86_400.0,
    12: -30 * 86_400.0,
    17: 1.5,
    20: -1.5,
}  # seconds, by hour
STARTED = 1_764_000_000.0


class Day:
    """An upstream, and the clock of the relay's machine."""

    def __init__(self) -> None:
        self.is_away = False
        self.hour = 0
        self.jumped = 0.0
        self.reports: dict[str, Any] = {}
        self.questions = 0

    def clock(self) -> float:
        try:
            elapsed = asyncio.get_running_loop().time()
        except RuntimeError:  # before the day
            elapsed = 0.0
        return STARTED + elapsed + self.jumped

    async def ask(self, method: str, path: str, *, body: Any = None, headers: Any = None, **_: Any) -> Answer:
        if self.is_away:
            raise UpstreamFailed("away")
        self.questions += 1
        if path == "/edge/validate":
            return Answer(200, {}, orjson.dumps({"tokens": [make_token(BACKEND, "client", "shop")]}))
        if method == "POST":
            self.reports[headers[ID_HEADER]] = body
            return Answer(202, {}, b"")
        etag = f'"{self.hour}"'
        if headers.get("If-None-Match") == etag:
            return Answer(304, {}, b"")
        document = {"version": 2, "features": [flag(f"of-hour-{self.hour}")]}
        return Answer(200, {"ETag": etag}, orjson.dumps(document))

    def count(self) -> int:
        return sum(metric["yes"] for body in self.reports.values() for metric in body["metrics"])


def make_report(hour: int) -> dict[str, Any]:
    metric = {
        "appName": "web",
        "featureName": "a",
        "timestamp": f"2026-01-01T{hour:02}:00:00Z",
        "variants": {},
    }
    return {
        "environment": "development",
        "token": "t",
        "applications": [],
        "metrics": [metric | {"yes": 1, "no": 0}],
        "impactMetrics": [],
    }


def test_a_day_of_a_relay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day, storage = Day(), Storage(tmp_path)
    monkeypatch.setattr(time, "time", day.clock)
    tokens = Tokens(storage, day.ask)
    copy = Copy(storage, day.ask, tokens, interval=POLL)
    reports = Reports(storage, day.ask, tokens, interval=REPORT)
    health = Health(Options("http://x", tmp_path), storage, tokens, copy, reports)

    async def live() -> None:
        token = await tokens.find(BACKEND)
        work = [asyncio.ensure_future(task()) for task in (copy.keep_current, reports.keep_sending)]
        for hour in range(24):
            day.hour, day.is_away = hour, hour in AWAY
            day.jumped += JUMPS.get(hour, 0.0)
            reports.add(make_report(hour))
            await asyncio.sleep(POLL + SOON)
            flags = await copy.find(token)
            assert [each["name"] for each in flags.features] == [
                f"of-hour-{AWAY[0] - 1 if day.is_away else hour}"
            ]
            await asyncio.sleep(HOUR - POLL - SOON)
            check_health(health.describe(), is_away=day.is_away)
        for task in work:
            task.cancel()

    run_quickly(live)
    storage.close()
    assert day.count() == 24
    assert len(day.reports) <= 24
    rounds = (24 - len(AWAY)) * HOUR / POLL  # at most 0.5 s earlier or later than POLL
    assert 0.9 * rounds < day.questions / 2 < 1.2 * rounds


def check_health(state: dict[str, Any], *, is_away: bool) -> None:
    """Ages are never negative, however the clock jumped, and small while the upstream answers."""
    assert state["health"] == ("DEGRADED" if is_away else "GOOD")
    assert state["flagsAgeSeconds"] >= 0
    assert state["secondsWithoutUpstream"] >= 0
    if not is_away:
        assert state["flagsAgeSeconds"] <= POLL + SOON
        assert (state["secondsWithoutUpstream"], state["batchesWaiting"]) == (0, 0)
