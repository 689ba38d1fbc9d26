"""What SDKs read: delta, streams, OFREP, and what the event loop answers by itself (304s, /healthz)."""

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from functools import partial
from itertools import count

from tests.attack.calls import Call, Verdict, judge
from tests.attack.installation import SEALED, Installation
from tests.attack.resources import Attacked, beside_each, repeat
from tests.attack.result import Result
from tests.support.live_server import Client

STREAMS = ("/api/client/streaming", "/ofrep/v1/events")
DEAF = 300  # streams that nobody reads
PAUSE = 0.2  # seconds between two changes
ETAGS = (
    "*", "W/*", '""', '"0"', '"-1"', '"4294967295"', '"4294967296"', f'"{"9" * 400}"', '"1", "2", W/"3"',
    ", ".join(['"a"'] * 1_000), '"\xff"', "unquoted", '"' * 3_000,
)  # fmt: skip
CONDITIONAL = ("/api/client/features", "/api/client/delta", "/api/frontend", "/healthz", "/api/openapi.json")
QUERIES = (
    "?project=sealed", "?namePrefix=%00", "?namePrefix=" + "x" * 5_000, "?tag=a", "?tag=:", "?tag[]=a:b:c",
    "?" + "&".join(f"project=p{number}" for number in range(700)), "?project=%ff", "?%",
)  # fmt: skip
HEADERS: tuple[dict[str, str], ...] = (
    {"Host": "elsewhere.example"}, {"Host": "127.0.0.1:1"}, {"Host": "a" * 300}, {"Accept-Encoding": "gzip;q=x"},
    {"Accept-Encoding": "identity;q=0, *;q=0"}, {"Range": "bytes=0-1,5-2,-1"}, {"Accept": "text/html;q=9"},
    {"X-Forwarded-For": "1.2.3.4, \xff"}, {"X-Request-Id": "a" * 3_000}, {"Unleash-Client-Spec": "9" * 500},
    {"Unleash-AppName": "\xe9" * 500}, {"Content-Length": "-1"}, {"Expect": "100-continue"},
)  # fmt: skip
CONTEXTS = (
    None, [], 7, "x", {}, {"context": None}, {"context": []}, {"context": {"targetingKey": {}}},
    {"context": {"targetingKey": None, "a": [[[]]], "b": {"c": 1}}}, {"context": {"currentTime": "\0"}},
    {"context": {"userId": 1e308, "remoteAddress": "::%eth0"}}, {"context": {"properties": "x", "": ""}},
)  # fmt: skip
FLAGS = "/ofrep/v1/evaluate/flags"
KEYS = ("", "/", "/sealed-flag", "/dark-theme", "/..%2f..%2f", "/%00", "/" + "x" * 3_000, "/a/b/c", "/%ff")
LARGE = {f"p{number}": "x" * 900 for number in range(1_000)}


def conditional() -> Iterator[Call]:
    for path in CONDITIONAL:
        for key in ("backend", "frontend", "portal", ""):
            for etag in ETAGS:
                yield Call(key, "GET", path, None, {"If-None-Match": etag})
            for headers in HEADERS:
                yield Call(key, "GET", path, None, headers)
            for query in QUERIES:
                yield Call(key, "GET", path + query)
        for method in ("HEAD", "OPTIONS", "POST", "PUT", "DELETE", "BREW"):
            yield Call("portal", method, path, b"{}" if method in ("POST", "PUT") else None)


def evaluated() -> Iterator[Call]:
    for key in ("frontend", "portal", "backend", ""):
        for path in KEYS:
            for context in CONTEXTS:
                yield Call(key, "POST", FLAGS + path, context)
    for etag in ETAGS:
        yield Call("frontend", "POST", FLAGS, {"context": {"targetingKey": "1"}}, {"If-None-Match": etag})


def attacks(target: Installation, seconds: float, quiet: float) -> Iterator[Result]:
    each = seconds / 6
    yield judge("odd conditions on SDK answers", target, conditional(), each)
    yield judge("odd OFREP requests", target, evaluated(), each)
    yield odd_streams(target)
    large = "frontend", "POST", FLAGS, json.dumps({"context": LARGE}).encode()
    made = {
        "1 MB: OFREP": partial(repeat, target, large, each),
        "304s, one after the other": partial(poll, target, each),
        f"{DEAF} streams that nobody reads": partial(hold_streams, target, each),
    }
    yield from beside_each(target, quiet, made)


def odd_streams(target: Installation) -> Result:
    """The beginning of each stream, with ids that were never given out, for each key."""
    verdict = Verdict(target)
    for path in STREAMS:
        for key in ("backend", "frontend", "portal", ""):
            for last in ("0", "-1", "4294967296", "9" * 4_000, "x", "\xff", '"1"'):
                call = Call(key, "GET", path, None, {"Last-Event-ID": last})
                began = time.perf_counter()
                status, answer = beginning(target, call)
                verdict.saw(call, status, answer, time.perf_counter() - began)
    return verdict.result("odd streams")


def beginning(target: Installation, call: Call) -> tuple[int, bytes]:
    """The status, and what comes until the first event is complete or nothing more comes for a second."""
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=10)
    with closing(connection):
        secret = {"Authorization": target.keys[call.key]} if call.key else {}
        connection.request(
            "GET", call.path, headers={"Accept": "text/event-stream", **secret, **call.headers}
        )
        connection.sock.settimeout(1)
        answer = connection.getresponse()
        read = b""
        with suppress(OSError, http.client.HTTPException):
            while b"\n\n" not in read.partition(b"\n\n")[2] and (line := answer.readline()):
                read += line
        return answer.status, read


def poll(target: Installation, seconds: float) -> Attacked:
    """The condition that holds, and one that does not, by turns."""
    found, until, etag = Attacked(), time.monotonic() + seconds, ""
    with closing(http.client.HTTPConnection("127.0.0.1", target.port, timeout=10)) as connection:
        for turn in count():
            if time.monotonic() > until:
                break
            headers = {"Authorization": target.keys["backend"], "If-None-Match": etag if turn % 2 else '"x"'}
            began = time.perf_counter()
            connection.request("GET", "/api/client/features", headers=headers)
            answer = connection.getresponse()
            size = len(answer.read())
            etag = answer.headers.get("ETag") or etag
            found.saw(answer.status, time.perf_counter() - began, size)
    return found


def hold_streams(target: Installation, seconds: float, admin_port: int | None = None) -> Attacked:
    """Streams are opened and never read, while a flag that they tell about changes again and again.

    It is changed through ``admin_port``, if the target is a relay.
    """
    found, until = Attacked(), time.monotonic() + seconds
    with ExitStack() as held, closing(Client(admin_port or target.port, target.keys["admin"])) as admin:
        for number in range(DEAF):
            connection = held.enter_context(
                closing(http.client.HTTPConnection("127.0.0.1", target.port, timeout=10))
            )
            with suppress(OSError):
                headers = {"Authorization": target.keys["backend"]}
                connection.request("GET", STREAMS[number % 2], headers=headers)
        for turn in count():
            if time.monotonic() > until:
                break
            state = "off" if turn % 2 else "on"
            path = f"{SEALED}/features/sealed-flag/environments/production/{state}"
            began = time.perf_counter()
            found.saw(admin.call("POST", path, {})[0], time.perf_counter() - began, 0)
            time.sleep(PAUSE)
        found.told = f"{DEAF} streams held"
        admin.call("POST", f"{SEALED}/features/sealed-flag/environments/production/on", {})
    return found
