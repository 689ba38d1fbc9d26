"""Reports are added up, kept until the upstream has them, and counted once."""

import asyncio
import errno
import gc
import os
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from flagadmin.core.errors import ServiceUnavailable
from relay import reports
from relay.http import Request
from relay.intake import read_bulk, read_metrics, read_registration
from relay.reports import MAX_NAMES, Reports, Sums, hour_of
from relay.storage import DirectoryInUse, Storage
from relay.tokens import Answer, Token, Tokens, UpstreamFailed
from sdk.schemas import MAX_COUNT, MAX_ENTRIES, MAX_LABELS, MAX_VARIANTS, BulkMetric
from tests.support.event_loop import run
from tests.support.live_server import PATIENCE, wait_until
from tests.support.relay import BACKEND, WEB, Relay, flag, relaying
from tests.support.sdk import metrics, registration
from tests.support.upstream import Upstream, make_token, running

pytestmark = pytest.mark.processes


@pytest.fixture
def upstream() -> Upstream:
    upstream = Upstream()
    upstream.change(flag("a"))
    upstream.add(make_token(BACKEND, "client", "shop"), make_token(WEB, "frontend", "shop"))
    return upstream


def report(relay: Relay, number: int = 1) -> None:
    for _ in range(number):
        assert relay.call("POST", "/api/client/metrics", BACKEND, metrics("web", ["a"]))[0] == 202


@pytest.mark.parametrize(
    ("moment", "hour"),
    [
        ("2026-11-26T19:30:00+05:30", "2026-11-26T14:00:00Z"),
        ("0001-01-01T00:00:00+14:00", "2000-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59-12:00", "2026-11-26T20:00:00Z"),
    ],
)
def test_any_time_has_its_hour(moment: str, hour: str) -> None:
    now = datetime(2026, 11, 26, 19, 30, tzinfo=UTC)
    assert hour_of(datetime.fromisoformat(moment), now=now) == hour


def test_reports_are_added_up(upstream: Upstream, tmp_path: Path) -> None:
    with running(upstream), relaying(upstream.port, tmp_path, "--report-seconds", "60") as relay:
        assert relay.call("POST", "/api/client/register", BACKEND, registration("web"))[0] == 202
        report(relay, 3)
        assert relay.call("POST", "/api/frontend/client/metrics", WEB, metrics("page", ["a"]))[0] == 200
        relay.process.terminate()
        relay.process.wait(PATIENCE)
        [(_, body)] = upstream.reports
    assert sorted(each["appName"] for each in body["applications"]) == ["page", "web"]
    assert len(body["metrics"]) == 2
    assert upstream.counted()["a"] == 4 * metrics("web", ["a"])["bucket"]["toggles"]["a"]["yes"]
    assert body["seenTokens"] == sorted((BACKEND, WEB))
    assert not list(tmp_path.glob("journal-*")) + list(tmp_path.glob("batch-*"))


def test_none_is_lost_and_none_counts_twice(upstream: Upstream, tmp_path: Path) -> None:
    each = metrics("web", ["a"])["bucket"]["toggles"]["a"]["yes"]
    with running(upstream):
        with relaying(upstream.port, tmp_path) as relay:
            upstream.loses_answers = True
            report(relay, 3)
            wait_until(lambda: len(upstream.reports) >= 2)
            report(relay, 2)
            relay.process.kill()
            relay.process.wait(PATIENCE)
        assert list(tmp_path.glob("batch-*"))
        upstream.loses_answers = False
        with relaying(upstream.port, tmp_path) as relay:
            report(relay, 4)
            wait_until(lambda: upstream.counted().get("a") == 9 * each)
        assert upstream.counted()["a"] == 9 * each
        assert len(upstream.reports) > len(dict(upstream.reports))


class Disk:
    """Reports of a directory, without a server."""

    def __init__(self, folder: Path, interval: float = 1) -> None:
        self.storage = Storage(folder)
        self.sent: list[tuple[str, Any]] = []
        self.fails = False
        self.takes = 10**9
        """The bytes that a body may have."""
        self.breaks_at = -1
        """After how many reports it no longer answers."""
        self.storage.write(
            "tokens.json",
            b'[{"token":"t:development.secret","type":"client","projects":["*"],'
            b'"environment":"development"}]',
        )
        self.reports = Reports(self.storage, self.ask, Tokens(self.storage, self.ask), interval=interval)

    async def ask(self, method: str, path: str, **more: Any) -> Answer:
        if self.fails or len(self.sent) == self.breaks_at:
            raise UpstreamFailed("gone")
        if len(orjson.dumps(more["body"])) > self.takes:
            return Answer(413, {}, b"")
        self.sent.append((more["headers"]["Flagadmin-Report-Id"], more["body"]))
        return Answer(202, {}, b"")

    def add(self, yes: int, **more: Any) -> None:
        metric = {"appName": "web", "featureName": "a", "timestamp": "2026-01-01T00:00:00Z", "variants": {}}
        self.reports.add(
            {
                "environment": "development",
                "token": "t",
                "applications": [],
                "metrics": [metric | {"yes": yes, "no": 0}],
                "impactMetrics": [],
                **more,
            }
        )

    def send(self) -> None:
        run(self.reports.send)

    def total(self) -> int:
        return sum(metric["yes"] for _, body in self.sent for metric in body["metrics"])


def metric(name: str) -> dict[str, Any]:
    return {
        "appName": "web",
        "featureName": name,
        "timestamp": "2026-01-01T00:00:00Z",
        "variants": {},
        "yes": 1,
        "no": 0,
    }


def test_a_journal_and_its_batch_count_once(tmp_path: Path) -> None:
    """As when the process was killed between writing the batch and deleting the journal."""
    disk = Disk(tmp_path)
    disk.fails = True
    disk.add(2)
    [journal] = tmp_path.glob("journal-*")
    lines = journal.read_bytes()
    disk.send()
    journal.write_bytes(lines + b'{"half a li')
    disk.storage.close()
    again = Disk(tmp_path)
    again.send()
    assert again.total() == 2
    assert not list(tmp_path.glob("journal-*"))


def test_a_relay_behind_that_repeats_itself_counts_once(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    for _ in range(3):
        disk.add(5, id="x-0")
    disk.storage.close()
    again = Disk(tmp_path)
    again.add(5, id="x-0")
    again.send()
    assert again.total() == 5


def test_a_full_disk_is_said_and_survived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(tmp_path)

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        patch.setattr(os, "fsync", full)
        disk.add(3)
        disk.fails = True
        disk.send()
        assert disk.storage.fault == "No space left on device"
        disk.fails = False
        disk.send()
    assert disk.total() == 3
    assert disk.storage.write("x", b"1")
    assert disk.storage.fault == ""
    assert not list(tmp_path.glob("*.new"))


def test_a_line_that_does_not_fit_on_the_disk_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, write = Disk(tmp_path), os.write
    with monkeypatch.context() as full:
        full.setattr("relay.storage.os.write", lambda file, text: write(file, text[: len(text) // 2]))
        disk.add(1)
    assert disk.storage.fault
    disk.add(2)
    disk.add(4)
    disk.storage.close()
    again = Disk(tmp_path)  # as after a kill
    again.send()
    assert again.total() == 6


def test_many_counts_are_sent_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay.reports.MAX_ENTRIES", 2)
    disk = Disk(tmp_path)
    metric = {"appName": "web", "timestamp": "t", "yes": 1, "no": 0, "variants": {"v": 1}}
    disk.add(0, metrics=[metric | {"featureName": f"f{n}"} for n in range(5)])
    disk.send()
    assert [len(body["metrics"]) for _, body in disk.sent] == [2, 2, 1]
    assert len({identifier for identifier, _ in disk.sent}) == 3


def test_many_impact_metrics_and_tokens_are_sent_in_parts(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    for number in range(1_500):
        disk.add(1, token=f"t{number:04}", impactMetrics=[{"name": f"m{number}"}])
    disk.send()
    bodies = [body for _, body in disk.sent]
    assert [len(body["impactMetrics"]) for body in bodies] == [200] * 7 + [100]
    assert [each["name"] for body in bodies for each in body["impactMetrics"]] == [
        f"m{number}" for number in range(1_500)
    ]
    assert [len(body["seenTokens"]) for body in bodies] == [1_000, 500] + [0] * 6
    assert disk.total() == 1_500


def test_impact_metrics_keep_their_application(upstream: Upstream, tmp_path: Path) -> None:
    full = {"labels": {f"l{number}": "" for number in range(MAX_LABELS)}}
    samples: list[Any] = [{"value": 1}, {"labels": {"appName": "own"}, "value": 2}, full, {"labels": 7}, "x"]
    metric = {"name": "errors", "help": "", "type": "counter", "samples": samples}
    with running(upstream), relaying(upstream.port, tmp_path) as relay:
        body = {"appName": "web", "impactMetrics": [metric, {"samples": 1}, "x"]}
        assert relay.call("POST", "/api/client/metrics", BACKEND, body)[0] == 202
        wait_until(lambda: upstream.reports)
    labeled = [{"labels": {"appName": "web"}, "value": 1}, *samples[1:]]
    origin = {"origin": {"type": "backend", "projects": ["shop"]}}
    assert upstream.reports[0][1]["impactMetrics"] == [
        metric | {"samples": labeled} | origin,
        {"samples": 1} | origin,
        "x",
    ]


def test_impact_metrics_keep_the_token_that_an_sdk_used() -> None:
    web = Token("secret-of-web", "frontend", "production", ("web",))
    body: Any = SimpleNamespace(json=lambda: {"appName": "web", "impactMetrics": [{"name": "m"}]}, headers={})
    [metric] = read_metrics(body, web)["impactMetrics"]
    assert metric["origin"] == {"type": "frontend", "projects": ["web"]}
    behind = {"applications": [], "metrics": [], "impactMetrics": [metric, {"name": "n"}]}
    for projects, kept in ((("*",), ["web"]), (("shop", "web"), ["web"]), (("shop",), [])):
        line, _ = read_bulk(behind, Token("secret-of-relay", "backend", "production", projects))
        assert [each["origin"] for each in line["impactMetrics"]] == [
            {"type": "frontend", "projects": kept},
            {"type": "backend", "projects": list(projects)},
        ]


def report_names(*names: str, **more: Any) -> list[dict[str, Any]]:
    metric = {"appName": "web", "timestamp": "t", "yes": 1, "no": 0, "variants": {}} | more
    return [metric | {"featureName": name} for name in names]


@pytest.mark.parametrize(
    "more",
    [
        {"metrics": report_names("a", "b", "c")},
        {"metrics": report_names("a", variants={"v": 1, "w": 1})},
        {"applications": [{"appName": "a", "instanceId": "b", "strategies": ["x", "y"]}]},
        {"impactMetrics": [{"help": "x" * 1_000}]},
    ],
)
def test_names_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]) -> None:
    monkeypatch.setattr("relay.reports.MAX_NAMES", 3)
    disk = Disk(tmp_path)
    disk.add(0, metrics=report_names("a", "b"))
    disk.add(0, metrics=report_names("a", "b"))
    disk.add(0, **more)
    with pytest.raises(ServiceUnavailable):
        disk.add(0)
    disk.send()
    disk.add(0)


def test_a_report_without_room_is_not_read(upstream: Upstream, tmp_path: Path) -> None:
    with running(upstream), relaying(upstream.port, tmp_path, "--report-seconds", "3600") as relay:
        for number in range(MAX_NAMES // MAX_ENTRIES):
            names = [f"{number}-{flag}" for flag in range(MAX_ENTRIES)]
            assert relay.call("POST", "/api/client/metrics", BACKEND, metrics("web", names))[0] == 202
        for path in ("register", "metrics", "metrics/bulk"):
            assert relay.call("POST", f"/api/client/{path}", BACKEND, {"appName": 7})[0] == 503
        assert relay.get("/api/frontend", WEB)[0] == 200


def test_the_garbage_collector_has_nothing_to_look_at_in_names() -> None:
    sums = Sums()
    line = {"environment": "e", "token": "t", "applications": [], "impactMetrics": []}
    gc.collect()
    before = len(gc.get_objects())
    sums.add(line | {"metrics": report_names(*(f"f{number}" for number in range(10_000)))})
    gc.collect()
    assert sums.names == 10_000
    assert len(gc.get_objects()) - before < 1_000


def test_an_application_that_registers_again_takes_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relay.reports.MAX_NAMES", 3)
    disk = Disk(tmp_path)
    for _ in range(5):
        disk.add(
            0,
            metrics=[],
            applications=[{"appName": "a", "instanceId": "b", "strategies": ["x"], "sdk": None}],
        )


def test_what_is_too_large_for_the_upstream_is_sent_in_parts(tmp_path: Path) -> None:
    """Unleash takes 100 kB."""
    disk = Disk(tmp_path)
    disk.takes = 1_000
    for number in range(40):
        disk.add(1, metrics=[metric(f"f{number}")], applications=[])
    disk.breaks_at = 2
    disk.send()
    assert disk.reports.waiting == 1
    disk.breaks_at = -1
    disk.send()
    assert sorted(each["featureName"] for _, body in disk.sent for each in body["metrics"]) == sorted(
        f"f{number}" for number in range(40)
    )
    assert len(disk.sent) == len({identifier for identifier, _ in disk.sent})
    assert (disk.reports.waiting, disk.reports.dropped) == (0, 0)
    assert not list(tmp_path.glob("batch-*")) + list(tmp_path.glob("journal-*"))


def test_sums_are_never_more_than_the_upstream_takes(tmp_path: Path) -> None:
    """It would refuse the whole entry, with what others have reported."""
    disk = Disk(tmp_path)
    for part in range(3):
        variants = {f"v{part}-{number}": MAX_COUNT for number in range(MAX_VARIANTS // 2)} | {"v": MAX_COUNT}
        disk.add(1, metrics=[metric("a") | {"yes": MAX_COUNT, "no": MAX_COUNT, "variants": variants}])
    disk.send()
    [[own]] = [body["metrics"] for _, body in disk.sent]
    assert (reports.MAX_COUNT, reports.MAX_VARIANTS) == (MAX_COUNT, MAX_VARIANTS)
    sent = BulkMetric.model_validate(own)
    assert (sent.yes, sent.no, (sent.variants or {})["v"]) == (MAX_COUNT, MAX_COUNT, MAX_COUNT)


def test_what_no_part_is_small_enough_for_keeps_no_other_waiting(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.takes = 10_000
    disk.add(1, metrics=[metric("a"), metric("b" * 20_000), metric("c")])
    disk.send()
    assert [each["featureName"] for _, body in disk.sent for each in body["metrics"]] == ["a", "c"]
    assert (disk.reports.waiting, disk.reports.dropped) == (0, 1)


def test_an_upstream_that_finds_everything_too_large_loses_nothing(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.takes = 0
    disk.add(1)
    disk.send()
    assert (disk.reports.waiting, disk.reports.dropped) == (1, 0)
    disk.takes = 10_000
    disk.send()
    assert disk.total() == 1


def test_a_large_journal_is_sent_before_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay.reports.MAX_JOURNAL", 300)
    disk = Disk(tmp_path, interval=3600)

    async def report_until_sent() -> None:
        sending = asyncio.create_task(disk.reports.keep_sending())
        async with asyncio.timeout(60):
            while not disk.sent:
                disk.add(1)
                await asyncio.sleep(0)
        sending.cancel()

    run(report_until_sent)
    assert disk.total() >= 2


def test_the_oldest_batches_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay.reports.MAX_BATCHES", 2)
    disk = Disk(tmp_path)
    disk.fails = True
    for yes in (1, 2, 4):
        disk.add(yes)
        disk.send()
    disk.fails = False
    assert (disk.reports.waiting, disk.reports.dropped) == (2, 1)
    disk.send()
    assert disk.total() == 6
    assert not list(tmp_path.glob("batch-*"))


def test_a_full_disk_keeps_few_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay.reports.MAX_BATCHES_IN_MEMORY", 2)
    disk = Disk(tmp_path)
    disk.fails = True
    monkeypatch.setattr(disk.storage, "write", lambda *_: False)
    for yes in (1, 2, 4):
        disk.add(yes)
        disk.send()
    disk.fails = False
    disk.send()
    assert disk.total() == 6
    assert not list(tmp_path.glob("journal-*"))


def test_a_directory_is_locked(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    with pytest.raises(DirectoryInUse):
        Storage(tmp_path)
    storage.close()


def test_a_relay_stands_before_another_and_tells_the_upstream_of_it(
    upstream: Upstream, tmp_path: Path
) -> None:
    each = metrics("web", ["a"])["bucket"]["toggles"]["a"]["yes"]
    with (
        running(upstream),
        relaying(upstream.port, tmp_path / "near", "--region", "near") as near,
        relaying(near.port, tmp_path / "far", "--region", "far") as far,
    ):
        assert far.flags(BACKEND) == ["a"]
        wait_until(lambda: {each["region"] for each in [*upstream.relays.values()]} == {"near", "far"})
        assert far.health()["tokens"] == 1
        identity = (tmp_path / "near" / "identity").read_text()
        assert upstream.relays[identity]["tokens"] == 1
        assert upstream.relays[identity]["streams"] <= 1
        assert far.get("/api/frontend", WEB)[0] == 200
        report(far, 3)
        upstream.change(flag("b"))
        wait_until(lambda: far.flags(BACKEND) == ["b"])
        wait_until(lambda: upstream.counted().get("a") == 3 * each)
        del upstream.tokens[BACKEND]
        wait_until(lambda: far.flags(BACKEND) == 401)
    assert upstream.counted()["a"] == 3 * each


def test_empty_lists_and_bad_flags_lose_nothing_else() -> None:
    token = Token("t", "client", "development", ("*",))
    body = metrics("web", [])
    body["bucket"]["toggles"] = {"bad": {"yes": -1}, "go": {"yes": 3, "variants": None}, "php": []}
    line = read_metrics(make_request(body), token)
    assert {counted["featureName"]: counted["yes"] for counted in line["metrics"]} == {"go": 3, "php": 0}
    line = read_registration(make_request(registration("web", strategies=None)), token)
    assert line["applications"][0]["strategies"] == []


def make_request(body: Any) -> Request:
    scope = SimpleNamespace(method="POST", path="/", query_string="", client="127.0.0.1:1", headers={})
    return Request(scope, orjson.dumps(body))
