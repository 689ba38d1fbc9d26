"""Requests that keep a server busy, and threads that send them one after the other."""

import http.client
import select
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from tests.support.event_stream import Listener

ADMIN, SDK = "*:*.0123456789abcdef-admin", "*:development.0123456789abcdef-sdk"
TOKENS = {"INIT_ADMIN_API_TOKENS": ADMIN, "INIT_CLIENT_API_TOKENS": SDK}
FLAG = "/api/admin/projects/default/features/checkout/environments/development"
IMPORTED = 20  # flags of an import
PAUSE = 0.05  # seconds between requests: the machine shall not be busy with the load alone
_EMPTY = ("featureStrategies", "featureEnvironments", "contextFields", "featureTags", "segments", "tagTypes")


def report_body() -> dict[str, Any]:
    """One use of the flag."""
    now = datetime.now(UTC).isoformat()
    bucket = {"start": now, "stop": now, "toggles": {"checkout": {"yes": 1, "no": 0}}}
    return {"appName": "load", "bucket": bucket}


def import_body(number: int) -> dict[str, Any]:
    features = [{"name": name, "type": "release"} for name in imported_names(number)]
    data = {"features": features} | {name: [] for name in _EMPTY}
    return {"project": "default", "environment": "development", "data": data}


def imported_names(number: int) -> set[str]:
    return {f"imported-{number}-{part}" for part in range(IMPORTED)}


@dataclass(frozen=True)
class Answer:
    """``status`` is None if the connection was lost, and ``body`` says how. ``then`` is on the monotonic clock."""

    number: int
    then: float
    status: int | None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def succeeded(self) -> bool:
        return self.status in (200, 202, 304)


@dataclass(frozen=True)
class Request:
    secret: str
    method: str
    path: str
    body: Any = None


class Load(threading.Thread):
    """Sends one request after the other to a port with TLS until it is stopped, and keeps what was answered.

    With ``revalidates``, requests say what was answered before, as SDKs do.

    A request that crosses with the close of an idle connection is sent once more, over a new one, as browsers,
    curl and Go do: before 1.27.4, nginx closes them without warning when its configuration is loaded again.
    """

    def __init__(self, port: int, request: Callable[[int], Request], *, revalidates: bool = False) -> None:
        super().__init__(daemon=True)
        self.answers: list[Answer] = []
        self._port, self._request, self._revalidates = port, request, revalidates
        self._etag = ""
        self._stopped = threading.Event()

    def run(self) -> None:
        connection = connect(self._port)
        number = 0
        while not self._stopped.is_set():
            try:
                answer = self._answer_over_kept(connection, number)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                connection = connect(self._port)
                answer = Answer(number, time.monotonic(), None, body=repr(error).encode())
            self.answers.append(answer)
            number += 1
            self._stopped.wait(PAUSE)
        connection.close()

    def stop(self) -> None:
        self._stopped.set()
        self.join(60)

    def statuses(self, since: float = 0.0) -> set[int | None]:
        return {answer.status for answer in list(self.answers) if answer.then > since}

    def successes(self, since: float = 0.0) -> int:
        return sum(answer.succeeded and answer.then > since for answer in list(self.answers))

    def _answer_over_kept(self, connection: http.client.HTTPSConnection, number: int) -> Answer:
        if connection.sock is not None and select.select([connection.sock], [], [], 0)[0]:
            connection.close()  # so has the server: connection pools of clients look before they send, too
        kept = connection.sock is not None
        try:
            return self._answer(connection, number)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            if not kept:
                raise
            connection.close()
            return self._answer(connection, number)

    def _answer(self, connection: http.client.HTTPSConnection, number: int) -> Answer:
        request = self._request(number)
        headers = {"Authorization": request.secret, "Content-Type": "application/json"}
        if self._etag:
            headers["If-None-Match"] = self._etag
        body = None if request.body is None else orjson.dumps(request.body)
        connection.request(request.method, request.path, body, headers)
        response = connection.getresponse()
        answer = Answer(
            number,
            time.monotonic(),
            response.status,
            {name.lower(): value for name, value in response.getheaders()},
            response.read(),
        )
        if self._revalidates and answer.succeeded:
            self._etag = answer.headers["etag"]
        return answer


class Streaming(threading.Thread):
    """An SDK that is told of changes, and connects again whenever its stream ends. ``versions`` are those it was told."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.versions: list[int] = []
        self.refusals: list[int] = []
        self._port = port
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.is_set():
            with (
                suppress(OSError, http.client.HTTPException, AssertionError),
                closing(connect(self._port)) as stream,
            ):
                headers = {"Authorization": SDK}
                if self.versions:
                    headers["Last-Event-ID"] = str(self.versions[-1])
                stream.request("GET", "/api/client/streaming", headers=headers)
                self._listen(Listener(stream))
            self._stopped.wait(PAUSE)

    def stop(self) -> None:
        """The stream is left when the next event comes."""
        self._stopped.set()

    def _listen(self, listener: Listener) -> None:
        if listener.status != 200:
            self.refusals.append(listener.status)
            return
        while not self._stopped.is_set() and (block := listener.next_block()) is not None:
            if block.name:
                self.versions.append(block.version)


def connect(port: int) -> http.client.HTTPSConnection:
    unverified = ssl._create_unverified_context()
    return http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=unverified)


def toggling(number: int) -> Request:
    return Request(ADMIN, "POST", f"{FLAG}/{'on' if number % 2 else 'off'}")


def reporting(number: int) -> Request:
    return Request(SDK, "POST", "/api/client/metrics", report_body())


def importing(number: int) -> Request:
    return Request(ADMIN, "POST", "/api/admin/features-batch/import", import_body(number))


def evaluating(number: int) -> Request:
    context = {"userId": str(number), "appName": "load"}
    return Request(ADMIN, "POST", "/api/admin/playground", {"environment": "development", "context": context})


def polling(number: int) -> Request:
    return Request(SDK, "GET", "/api/client/features")


def polling_delta(number: int) -> Request:
    return Request(SDK, "GET", "/api/client/delta")
