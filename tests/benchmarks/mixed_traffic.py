"""The clients of ``bench_mixed_load``: each sends one kind of request again and again, and checks every answer."""

import asyncio
import gzip
import http.client
import json
import random
import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, NamedTuple

PATIENCE = 120  # seconds until an answer counts as lost
IDLE = 5.0  # seconds that a connection is kept for the next request; the server closes it after ten
RECONNECT = 2.0  # seconds
REVISION = re.compile(r'"[0-9a-f]{8}:([0-9]+):v1"')


class Wrong(Exception):
    """An answer that must not be."""


class Log:
    """What was answered, by kind of request. Thread-safe."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.errors: Counter[tuple[str, str]] = Counter()
        self.stop = threading.Event()
        self._lock = threading.Lock()

    def answered(self, kind: str, seconds: float) -> None:
        with self._lock:
            self.seconds[kind].append(seconds)

    def failed(self, kind: str, what: object) -> None:
        with self._lock:
            self.errors[kind, str(what)[:200]] += 1
            print(f"{datetime.now(UTC):%H:%M:%S} {kind}: {what}"[:300], flush=True)


class Answer(NamedTuple):
    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        packed = self.headers.get("Content-Encoding") == "gzip"
        return json.loads(gzip.decompress(self.body) if packed else self.body)

    def expect(self, *statuses: int) -> "Answer":
        if self.status not in statuses:
            raise Wrong(f"{self.status}: {self.body[:150].decode(errors='replace')}")
        return self


class Connection:
    """Sends requests with the same headers, on one connection while it is used often."""

    def __init__(self, port: int, **headers: str) -> None:
        self._port = port
        self._headers = headers
        self._open: http.client.HTTPConnection | None = None
        self._used = 0.0

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        if self._open is None or time.monotonic() - self._used > IDLE:
            self.close()
            self._open = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        data = None if body is None else json.dumps(body).encode()
        sent = self._headers | ({} if data is None else {"Content-Type": "application/json"}) | headers
        try:
            self._open.request(method, path, data, sent)
            response = self._open.getresponse()
            answer = Answer(response.status, response.headers, response.read())
        except BaseException:
            self.close()
            raise
        self._used = time.monotonic()
        return answer

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


def repeat(log: Log, kind: str, every: float, ask: Callable[[], object]) -> threading.Thread:
    """Asks every so many seconds, in a thread. A late turn is not made up for."""

    def run() -> None:
        time.sleep(random.uniform(0, min(every, IDLE)))
        due = time.monotonic()
        while not log.stop.wait(max(due - time.monotonic(), 0)):
            due = max(due + every, time.monotonic())
            begun = time.perf_counter()
            try:
                ask()
            except (Wrong, OSError, http.client.HTTPException, ValueError) as error:
                log.failed(kind, error if isinstance(error, Wrong) else f"{type(error).__name__}: {error}")
            else:
                log.answered(kind, time.perf_counter() - begun)

    thread = threading.Thread(target=run, name=kind, daemon=True)
    thread.start()
    return thread


class Poller:
    """Polls with the ETag of the latest answer, as SDKs do; none may be older than one before."""

    def __init__(
        self, port: int, secret: str, path: str, version: Callable[[str], int], *, packed: bool
    ) -> None:
        encoding = {"Accept-Encoding": "gzip"} if packed else {}
        spec = {"Unleash-Client-Spec": "5.2.0"}
        self._connection = Connection(port, Authorization=secret, **encoding, **spec)
        self._path, self._version = path, version
        self._etag = ""
        self._known = 0

    def __call__(self) -> None:
        known = {"If-None-Match": self._etag} if self._etag else {}
        answer = self._connection.call("GET", self._path, **known).expect(200, 304)
        etag = answer.headers["ETag"]
        version = self._version(etag)
        if version < self._known:
            raise Wrong(f"{etag} after {self._etag}")
        if answer.status == 200:  # a 304 may have a later version that differs in nothing
            self._etag, self._known = etag, version


def features(port: int, secret: str, *, packed: bool = True) -> Poller:
    def version(etag: str) -> int:
        found = REVISION.search(etag)
        if found is None:
            raise Wrong(f"the ETag {etag}")
        return int(found[1])

    return Poller(port, secret, "/api/client/features", version, packed=packed)


def delta(port: int, secret: str) -> Poller:
    return Poller(port, secret, "/api/client/delta", lambda etag: int(etag.strip('W/"')), packed=True)


class Reports:
    """Usage of an application's flags, each time of another one, and its registrations."""

    def __init__(self, port: int, secret: str, flags: list[str], applications: list[str]) -> None:
        self._connection = Connection(port, Authorization=secret)
        self._flags, self._applications = flags, applications
        self._random = random.Random(42)

    def _who(self) -> dict[str, str]:
        return {
            "appName": self._random.choice(self._applications),
            "instanceId": f"i-{self._random.randrange(20)}",
        }

    def metrics(self) -> None:
        now = datetime.now(UTC).isoformat()
        used = {
            name: {"yes": 3, "no": 1, "variants": {"blue": 3}}
            for name in self._random.sample(self._flags, 10)
        }
        body = self._who() | {"bucket": {"start": now, "stop": now, "toggles": used}}
        self._connection.call("POST", "/api/client/metrics", body).expect(202)

    def register(self) -> None:
        said = {"sdkVersion": "unleash-client-node:6.12.1", "strategies": ["default"], "interval": 15_000}
        body = self._who() | said | {"started": datetime.now(UTC).isoformat()}
        self._connection.call("POST", "/api/client/register", body).expect(202)


class Listener(asyncio.Protocol):
    """A stream whose events must have growing ids."""

    def __init__(self, streams: "Streams", secret: str) -> None:
        self.streams, self.secret = streams, secret
        self._rest = b""
        self._known = 0

    def connection_made(self, transport: Any) -> None:
        head = (
            f"GET /api/client/streaming HTTP/1.1\r\nHost: localhost\r\nAuthorization: {self.secret}\r\n\r\n"
        )
        transport.write(head.encode())

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"HTTP/1.1 ") and b" 200 " not in line:
                self.streams.log.failed("stream", line.decode())
            if line.startswith(b"id:"):
                version = int(line[3:])
                if version < self._known:
                    self.streams.log.failed("stream", f"event {version} after {self._known}")
                self._known = version
                self.streams.log.answered("stream event (no latency)", 0.0)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.streams.log.stop.is_set():
            self.streams.log.failed("stream", f"lost: {error}")
            asyncio.get_running_loop().call_later(RECONNECT, self.streams.open, self.secret)


class Streams:
    """Streams of SDKs, in a loop of their own thread."""

    def __init__(self, log: Log, port: int, secrets: list[str]) -> None:
        self.log, self._port = log, port
        self._loop = asyncio.new_event_loop()
        self._tasks: set[Any] = set()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        for secret in secrets:
            self._loop.call_soon_threadsafe(self.open, secret)

    def open(self, secret: str) -> None:
        task = self._loop.create_task(self._open(secret))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open(self, secret: str) -> None:
        try:
            await self._loop.create_connection(lambda: Listener(self, secret), "127.0.0.1", self._port)
        except OSError as error:
            self.log.failed("stream", error)
            self._loop.call_later(RECONNECT, self.open, secret)


def once(port: int, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    with closing(Connection(port, **headers)) as connection:
        return connection.call(method, path, body)
