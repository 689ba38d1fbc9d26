"""What SDKs get from a relay: what the upstream would have told them."""

import gzip
import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import pytest
from yggdrasil_engine.engine import UnleashEngine

from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from tests.support.engine import NOW, compiled
from tests.support.event_stream import listening
from tests.support.live_server import PATIENCE, Client, held_sockets, wait_until
from tests.support.relay import BACKEND, OTHER, WEB, WIDE, Relay, flag, relaying
from tests.support.upstream import Upstream, make_token, running

pytestmark = pytest.mark.processes

SPEC = {"Unleash-Client-Spec": "5.2.0"}


def rollout(percentage: int, **more: Any) -> dict[str, Any]:
    parameters = {"rollout": str(percentage), "stickiness": "userId", "groupId": "g"}
    return {"name": "flexibleRollout", "parameters": parameters, **more}


NORWAY = {"contextName": "country", "operator": "IN", "values": ["NO"]}
COLORS = [
    {"name": name, "weight": 500, "stickiness": "userId", "payload": {"type": "string", "value": name}}
    for name in ("blue", "red")
]
FLAGS = [
    flag("everyone"),
    flag("seen", segments=[1]),
    flag("half", **rollout(50, variants=COLORS)),
    flag("elsewhere", "other"),
    flag("child") | {"dependencies": [{"feature": "half", "enabled": True, "variants": []}]},
]


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    upstream = Upstream()
    upstream.segments = [{"id": 1, "name": "norwegians", "constraints": [NORWAY]}]
    upstream.change(*FLAGS)
    upstream.add(
        make_token(BACKEND, "client", "shop"),
        make_token(WIDE, "client", "*"),
        make_token(WEB, "frontend", "shop"),
        make_token(OTHER, "frontend", "shop", environment="production"),
    )
    with running(upstream):
        yield upstream


@pytest.fixture(scope="module")
def relay(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    with relaying(upstream.port, tmp_path_factory.mktemp("relay") / "data", "--token", BACKEND) as relay:
        wait_until(lambda: relay.flags(BACKEND) == ["everyone", "seen", "half", "child"])
        yield relay


def test_sdks_get_the_upstreams_bytes(relay: Relay, upstream: Upstream) -> None:
    etag, expected = upstream.answer_to(BACKEND)
    with closing(Client(relay.port, BACKEND)) as client:
        assert client.call("GET", "/api/client/features", **SPEC) == (200, expected)
        assert client.call("GET", "/api/client/features", **SPEC, **{"If-None-Match": etag}) == (304, b"")
    assert relay.flags(WIDE) == [each["name"] for each in FLAGS]
    assert relay.get("/api/client/features/half", BACKEND) == (200, FLAGS[2])
    assert relay.get("/api/client/features/nope", BACKEND)[0] == 404
    _, named = relay.get("/api/client/features?namePrefix=e", BACKEND, **SPEC)
    assert [each["name"] for each in named["features"]] == ["everyone"]


def test_repeated_slashes_count_as_one(relay: Relay) -> None:
    expected = relay.get("/api/client/features/half", BACKEND)
    assert relay.get("/api//client/features///half/", BACKEND) == expected
    assert relay.call("OPTIONS", "/api//frontend")[0] == 204
    with closing(Client(relay.port, BACKEND)) as client:
        client._connection.request("GET", "/api//client/streaming", headers={"Authorization": BACKEND})
        assert client._connection.getresponse().headers["Content-Type"] == "text/event-stream"


@pytest.mark.parametrize("path", ["/api/client/features", "/api/client/delta"])
def test_answers_are_compressed_for_who_accepts_gzip(relay: Relay, path: str) -> None:
    with closing(Client(relay.port, BACKEND)) as client:
        _, plain = client.call("GET", path, **SPEC)
        assert client.call("GET", path, **SPEC, **{"Accept-Encoding": "gzip;q=0, br"}) == (200, plain)
        for _ in range(2):
            status, zipped = client.call("GET", path, **SPEC, **{"Accept-Encoding": "br, gzip;q=0.5"})
            assert (status, gzip.decompress(zipped)) == (200, plain)


def test_older_sdks_get_the_constraints_of_segments(relay: Relay) -> None:
    _, body = relay.get("/api/client/features", BACKEND)
    assert "segments" not in body
    [strategy] = next(each for each in body["features"] if each["name"] == "seen")["strategies"]
    assert (strategy["constraints"], "segments" in strategy) == ([NORWAY], False)
    assert relay.get("/api/client/features/seen", BACKEND)[1]["strategies"] == [strategy]
    assert relay.get("/api/client/features/seen", BACKEND, **SPEC)[1]["strategies"][0]["segments"] == [1]
    for path in ("/api/client/features", "/api/client/features/seen"):
        assert relay.get(path, BACKEND, **{"Unleash-Client-Spec": "v5"})[0] == 400


@pytest.mark.parametrize("user", ["1", "2", "3", "7"])
def test_frontend_sdks_get_what_the_engine_finds(relay: Relay, user: str) -> None:
    own = {"features": [each for each in FLAGS if each["project"] == "shop"]}
    segments = {"segments": [{"id": 1, "name": "norwegians", "constraints": [NORWAY]}]}
    context = {"userId": user, "properties": {"country": "NO"}}
    evaluation = evaluate(
        compiled(own | segments),
        Context(context | {"environment": "development"}),
        now=NOW,
        random=lambda: 0.5,
    )
    expected = {
        each.name: evaluation.variant(each, outcome) for each, outcome in evaluation.pairs() if outcome.on
    }
    for status, body in (
        relay.get(f"/api/frontend?userId={user}&country=NO", WEB),
        relay.call("POST", "/api/frontend", WEB, {"context": context}),
        relay.get(f"/api/proxy?userId={user}&properties[country]=NO", WEB),
    ):
        assert status == 200
        variants = {each["name"]: each["variant"] for each in body["toggles"]}
        assert {n: v["name"] if v["enabled"] else None for n, v in variants.items()} == expected
        assert [each["name"] for each in body["toggles"] if each["impressionData"]] == ["seen"]
    _, bulk = relay.call(
        "POST", "/ofrep/v1/evaluate/flags", WEB, {"context": {"targetingKey": user, "country": "NO"}}
    )
    assert {each["key"] for each in bulk["flags"] if each["variant"] != "disabled"} == set(expected)
    _, one = relay.call("POST", "/ofrep/v1/evaluate/flags/half", WEB, {"context": {"targetingKey": user}})
    assert one["variant"] == (expected.get("half") or "disabled")


def test_a_frontend_answer_is_recognized_by_its_etag(relay: Relay) -> None:
    with closing(Client(relay.port, WEB)) as client:
        headers = {"Authorization": WEB, "Origin": "https://a.example"}
        client._connection.request("GET", "/api/frontend?userId=1", headers=headers)
        response = client._connection.getresponse()
        response.read()
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert (
        relay.get("/api/frontend?userId=1&x=2", WEB, **{"If-None-Match": response.headers["ETag"]})[0] == 304
    )
    assert relay.call("OPTIONS", "/api/frontend")[0] == 204


@pytest.mark.parametrize("path", ["/api/frontend", "/ofrep/v1/evaluate/flags", "/ofrep/v1/evaluate/flags/a"])
def test_no_body_is_read_without_a_token(relay: Relay, path: str) -> None:
    assert relay.call("POST", path, "", {"context": 7})[0] == 401
    assert relay.call("POST", path, WEB, {"context": 7})[0] == 400


def test_what_is_not_http_1_is_not_waited_for(relay: Relay) -> None:
    with held_sockets(relay.port, 1, b"PRI * HTTP/2") as [stranger]:
        assert stranger.recv(100).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("secret", ["", "shop:development.nobody-knows-it"])
def test_a_strangers_large_body_is_not_received(relay: Relay, secret: str) -> None:
    head = f"POST /api/frontend HTTP/1.1\r\nHost: x\r\nAuthorization: {secret}\r\nContent-Length: 1000000\r\n\r\n"
    with held_sockets(relay.port, 1, head.encode()) as [stranger]:
        answer = b""
        while part := stranger.recv(4_096):
            answer += part
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert (
        relay.call("POST", "/api/frontend", WEB, {"context": {"properties": {"x": "y" * 100_000}}})[0] == 200
    )


@pytest.mark.parametrize(
    ("method", "path", "secret", "status"),
    [
        ("GET", "/api/client/features", "", 401),
        ("GET", "/api/client/features", "shop:development.nobody-knows-it", 401),
        ("GET", "/api/client/features", WEB, 403),
        ("GET", "/api/client/streaming", WEB, 403),
        ("GET", "/api/frontend", BACKEND, 403),
        ("GET", "/api/frontend", OTHER, 503),
        ("PUT", "/api/frontend", WEB, 405),
        ("GET", "/api/admin/projects", BACKEND, 404),
        ("POST", "/api/client/metrics", BACKEND, 400),
        ("POST", "/ofrep/v1/evaluate/flags/nope", WEB, 404),
        ("GET", "/metrics", "", 404),
    ],
)
def test_what_is_refused(relay: Relay, method: str, path: str, secret: str, status: int) -> None:
    answered, body = relay.call(method, path, secret, {} if method == "POST" else None)
    assert answered == status
    assert ("errorCode" if path.startswith("/ofrep") else "message") in body


def test_tokens_are_validated_for_relays_behind(relay: Relay) -> None:
    _, body = relay.call(
        "POST", "/edge/validate", body={"tokens": [BACKEND, WEB, "shop:development.unknown-one"]}
    )
    assert [(each["token"], each["type"]) for each in body["tokens"]] == [
        (BACKEND, "client"),
        (WEB, "frontend"),
    ]


def read_beginning(stream: HTTPResponse) -> bytes:
    """The first line of the first event."""
    assert (stream.readline(), stream.readline()) == (b"retry: 2000\n", b"\n")
    return stream.readline()


def test_a_delta_has_what_changed(relay: Relay, upstream: Upstream) -> None:
    _, whole = relay.get("/api/client/delta", BACKEND)
    [hydration] = whole["events"]
    assert (hydration["type"], len(hydration["features"])) == ("hydration", 4)
    known = {"If-None-Match": f'"{hydration["eventId"]}"'}
    assert relay.get("/api/client/delta", BACKEND, **known)[0] == 304
    client = Client(relay.port, BACKEND)
    client._connection.request("GET", "/api/client/streaming", headers={"Authorization": BACKEND})
    stream = client._connection.getresponse()
    assert read_beginning(stream) == b"event: unleash-connected\n"
    upstream.change(*FLAGS[:1], flag("new"), *FLAGS[2:])
    try:
        while stream.readline() != b"event: unleash-updated\n":
            pass
        stream.readline()
        events = json.loads(stream.readline().removeprefix(b"data: "))["events"]
        assert {(e["type"], e.get("featureName") or e["feature"]["name"]) for e in events} == {
            ("feature-updated", "new"),
            ("feature-removed", "seen"),
        }
        assert relay.get("/api/client/delta", BACKEND, **known)[1]["events"] == events
    finally:
        client.close()
        upstream.change(*FLAGS)
        wait_until(lambda: relay.flags(BACKEND) == ["everyone", "seen", "half", "child"])


def test_versions_stay_within_what_sdks_read(tmp_path: Path) -> None:
    """The revision is a sum over projects; a restored backup gives each of them a million more."""
    upstream, engine = Upstream(), UnleashEngine()
    upstream.add(make_token(BACKEND, "client", "shop"))
    upstream.revision = 2**33 - 3
    upstream.change(flag("first"))
    with running(upstream), relaying(upstream.port, tmp_path) as relay:
        with listening(relay.port, BACKEND) as stream:
            events = [stream.next()]
            for name in ("second", "third", "fourth"):
                upstream.change(flag(name))
                events.append(stream.next())
        assert [event.version for event in events] == [2**32 - 2, 2**32 - 1, 1, 2]
        assert [event.kinds for event in events[1:]] == [
            ["feature-updated", "feature-removed"],
            ["hydration"],
            ["feature-updated", "feature-removed"],
        ]
        for event in events:
            engine.take_state(event.fields["data"])
        assert [engine._do_is_enabled(name, {}) for name in ("first", "fourth")] == [None, True]
        _, delta = relay.get("/api/client/delta", BACKEND, **{"If-None-Match": f'"{2**32 - 1}"'})
        assert [event["type"] for event in delta["events"]] == ["hydration"]


def test_figures_are_for_who_has_their_token_and_a_relay_that_stops_ends_its_streams(
    upstream: Upstream, tmp_path: Path
) -> None:
    """SDKs keep streams open for days, and the relay's manager would wait for them."""
    with (
        relaying(upstream.port, tmp_path, "--metrics-token", "m", "--token", BACKEND) as relay,
        closing(Client(relay.port, BACKEND)) as client,
    ):
        assert relay.get("/metrics", "Bearer wrong")[0] == 401
        assert wait_until(lambda: b"flagadmin_relay_scopes 1.0" in relay.get("/metrics", "Bearer m")[1])
        client._connection.request("GET", "/api/client/streaming", headers={"Authorization": BACKEND})
        stream = client._connection.getresponse()
        assert read_beginning(stream) == b"event: unleash-connected\n"
        relay.process.terminate()
        assert b"\nretry: " in stream.read()
        assert relay.process.wait(PATIENCE) == 0


def test_one_flag_of_a_frontend_sdk_is_told_when_it_is_off_too(relay: Relay) -> None:
    """As Unleash Edge does; what is not there is 404."""
    for path in ("/api/frontend/features/seen", "/api/proxy/features/seen"):
        status, off = relay.get(f"{path}?userId=1&country=SE", WEB)
        assert (status, off["enabled"], off["variant"]["name"]) == (200, False, "disabled")
        _, on = relay.call("POST", path, WEB, {"context": {"properties": {"country": "NO"}}})
        assert (on["name"], on["enabled"], on["impressionData"]) == ("seen", True, True)
    assert relay.get("/api/frontend/features/elsewhere", WEB)[0] == 404


def test_providers_are_told_to_ask_again(relay: Relay, upstream: Upstream) -> None:
    _, bulk = relay.call("POST", "/ofrep/v1/evaluate/flags", WEB, {"context": {}})
    [stream] = bulk["eventStreams"]
    path = stream["endpoint"]["requestUri"]
    assert WEB not in path
    with closing(Client(relay.port)) as client:
        client._connection.request("GET", path, headers={"Origin": "https://a.example"})
        events = client._connection.getresponse()
        assert events.headers["Access-Control-Allow-Origin"] == "*"
        first = [read_beginning(events), *(events.readline() for _ in range(3))]
        assert first[2] == b'data: {"type":"refetchEvaluation"}\n'
        upstream.change(*FLAGS, flag("another"))
        try:
            assert [events.readline() for _ in range(4)][1:3] != first[1:3]
        finally:
            upstream.change(*FLAGS)
    assert relay.get("/ofrep/v1/events?ticket=0123", "")[0] == 401


def test_hundreds_of_streams_keep_nobody_waiting(relay: Relay) -> None:
    request = f"GET /api/client/streaming HTTP/1.1\r\nHost: x\r\nAuthorization: {BACKEND}\r\n\r\n"
    with held_sockets(relay.port, 400, request.encode()):
        assert "everyone" in relay.flags(BACKEND)


def test_streams_that_nobody_reads_take_next_to_no_memory(tmp_path: Path) -> None:
    upstream = Upstream()
    upstream.change(flag("large") | {"description": "x" * 8_000_000})
    upstream.add(make_token(BACKEND, "client", "shop"))
    request = f"GET /api/client/streaming HTTP/1.1\r\nHost: x\r\nAuthorization: {BACKEND}\r\n\r\n".encode()
    with running(upstream), relaying(upstream.port, tmp_path) as relay:
        with held_sockets(relay.port, 1, request) as [first]:
            assert first.recv(1)
            before = count_megabytes(relay.process.pid)
        with held_sockets(relay.port, 40, request) as held:
            assert all(connection.recv(1) for connection in held)
            assert relay.flags(BACKEND) == ["large"]
            assert count_megabytes(relay.process.pid) < before + 100  # not 8 more for each


def count_megabytes(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def test_no_django_is_loaded() -> None:
    loaded = "import sys, relay.main; print([m for m in sys.modules if m.split('.')[0] in %r])"
    unwanted = ("django", "rest_framework", "psycopg", "groups", "projects")
    said = subprocess.run(
        [sys.executable, "-c", loaded % (unwanted,)], capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == "[]"
