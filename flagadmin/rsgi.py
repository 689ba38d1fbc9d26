"""The RSGI application for Granian: an event loop receives requests, threads run the WSGI application.

A request takes a thread only from the arrival of its whole body until its response is complete, so a client that
sends or reads slowly blocks no other. The loop answers the paths in `loop_routes` without a thread.
"""

import asyncio
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from io import BytesIO
from time import perf_counter
from typing import Any

import orjson
from django.conf import settings
from django.db import connections

from flagadmin.core.errors import AppError, AuthenticationRequired
from flagadmin.core.http.error_responses import as_app_error, is_api_path, log_and_render
from flagadmin.core.http.logs import request_id
from flagadmin.core.http.middleware import (
    BEGUN,
    REFUSED,
    choose_request_id,
    count_request,
    log_request,
    make_canonical_path,
)
from flagadmin.core.http.request_bodies import limit_at
from flagadmin.core.http.request_headers import choose_address, get_peer
from flagadmin.core.server import loop_routes
from flagadmin.core.server import worker_processes as processes
from flagadmin.core.server.loop_routes import Ready, is_writing
from flagadmin.core.server.memory import LARGE, on_one_stack, trim
from flagadmin.core.server.receiving import BodyReceiver
from flagadmin.core.server.slow_clients import (
    answering,
    end_slow_requests,
    is_large,
    send_large,
    watch_readers,
)
from flagadmin.wsgi import application as wsgi_application
from groups.authentication import check_known


class _Canonical:
    """A Granian scope with the canonical path, which the routes know."""

    def __init__(self, scope: Any, path: str) -> None:
        self._scope, self.path = scope, path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scope, name)


class Application:
    """The RSGI application. Granian calls ``__rsgi_init__`` once, then ``__rsgi__`` for each request."""

    def __init__(self) -> None:
        self.body_receiver = BodyReceiver(self.check_known, settings.BODY_LIMIT, limit_at)
        # A change may wait for a commit or a lock; other requests always find a thread.
        self.places_to_write = asyncio.Semaphore(max(1, settings.SERVER_THREADS * 3 // 4))
        self.threads = ThreadPoolExecutor(settings.SERVER_THREADS, thread_name_prefix="request")
        # A separate pool, so that many anonymous requests do not delay authenticated ones.
        self.authentication_threads = ThreadPoolExecutor(2, thread_name_prefix="known")
        self.running_requests = 0
        self.stopping = asyncio.Event()

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        tasks = watch_readers, end_slow_requests, *loop_routes.tasks
        self.tasks = [loop.create_task(loop_routes.repeat(task)) for task in tasks]
        stop_granian = _prepare_stop_by_signal()

        def stop() -> None:  # called by another thread
            stop_granian()
            with suppress(RuntimeError):  # the loop has already been closed
                loop.call_soon_threadsafe(self._stop)

        processes.set_stop_handler(stop, lambda: self.running_requests > 0)

    def _stop(self) -> None:
        self.stopping.set()
        for task in self.tasks:
            task.cancel()

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        answering.add(client := scope.client)
        try:
            await self.receive(scope, protocol)
        finally:
            answering.discard(client)

    async def receive(self, scope: Any, protocol: Any) -> None:
        headers = scope.headers
        if (path := make_canonical_path(scope.path)) != scope.path:
            scope = _Canonical(scope, path)
        if "content-length" not in headers and "transfer-encoding" not in headers:
            if scope.method == "GET":
                return await self.answer_get(scope, protocol)
            return await self.answer(scope, protocol, b"")
        try:
            async with self.body_receiver.receive(scope, protocol) as body:
                if scope.method == "POST" and (shortcut := loop_routes.find_post(scope.path)):
                    await self.answer_ready(shortcut, scope, protocol, body)
                else:
                    await self.answer(scope, protocol, body)
        except AppError as error:
            if is_api_path(scope.path):
                identifier = choose_request_id(headers.get("x-request-id") or "")
                _refuse(protocol, scope.path, error, identifier)
                _count(scope, "none", error.status, 0.0, identifier)
            else:
                await self.answer(scope, protocol, b"", refused=error)
        except EOFError:
            protocol.response_empty(400, [])  # the client has disconnected

    async def answer_get(self, scope: Any, protocol: Any) -> None:
        """Answers a GET request without a body: in the loop if possible."""
        path = scope.path
        if shortcut := loop_routes.shortcuts.get(path):
            await self.answer_ready(shortcut, scope, protocol, b"")
        elif handler := loop_routes.streams.get(path):
            await self.stream(handler, scope, protocol)
        else:
            await self.answer(scope, protocol, b"")

    async def answer_ready(
        self, shortcut: loop_routes.Shortcut, scope: Any, protocol: Any, body: bytes
    ) -> None:
        """Answers in the loop if possible. Otherwise Django answers, and the shortcut learns the response."""
        begun = perf_counter()
        if ready := shortcut.answer(scope, body):
            if not is_large(ready):
                _send(protocol, ready)
            seconds = perf_counter() - begun
            route, caller = ready.route or scope.path[1:], ready.caller or shortcut.caller
            _count(scope, route, ready.status, seconds, ready.request_id, caller)
            if is_large(ready):
                await send_large(ready, scope, protocol)
        else:
            await self.answer(scope, protocol, body, learn=shortcut.learn(scope, body))

    async def stream(self, handler: loop_routes.StreamHandler, scope: Any, protocol: Any) -> None:
        async def ask() -> tuple[Ready, Any]:
            return await self.loop.run_in_executor(self.threads, _answer, make_environ(scope, b""), None)

        request = loop_routes.StreamRequest(scope, protocol, self.stopping, ask)
        self.running_requests += 1
        try:
            # A task, because asyncio.timeout() needs one and Granian does not run this coroutine in one.
            await self.loop.create_task(handler(request))
        finally:
            self.running_requests -= 1

    async def check_known(self, scope: Any) -> None:
        if not any(name in scope.headers for name in ("authorization", "x-api-key", "cookie")):
            raise AuthenticationRequired  # without a database query
        await self.loop.run_in_executor(self.authentication_threads, _check_known, make_environ(scope, b""))

    async def answer(
        self,
        scope: Any,
        protocol: Any,
        body: bytes,
        *,
        refused: AppError | None = None,
        learn: loop_routes.Learn | None = None,
    ) -> None:
        environ = make_environ(scope, body) | ({REFUSED: refused} if refused else {})
        self.running_requests += 1
        try:
            async with self.places_to_write if is_writing(scope.method, scope.path) else nullcontext():
                answered = await self.loop.run_in_executor(self.threads, _answer, environ, protocol)
        finally:
            self.running_requests -= 1
        # The request no longer counts as running: a client that reads slowly must not delay stopping.
        if is_large(answered[0]):
            await send_large(answered[0], scope, protocol)
        if learn:
            learn(*answered)


def _prepare_stop_by_signal() -> Any:
    """Returns a function that makes the loop handle SIGTERM, because the signal itself is blocked."""
    descriptor = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)
    return lambda: os.write(descriptor, bytes([signal.SIGTERM]))


def _check_known(environ: dict[str, Any]) -> None:
    """Raises AppError for an unknown caller. Runs in a thread, because it queries the database."""
    try:
        check_known(environ)
    except Exception as error:
        raise as_app_error(error) from error
    finally:
        connections.close_all()


@on_one_stack
def _answer(environ: dict[str, Any], protocol: Any | None) -> tuple[Ready, Any]:
    """Runs the WSGI application in a thread. Returns its answer and Django's response.

    With a ``protocol``, it sends the answer unless that is large. Without one, the caller reads the body of a response
    with a ``stream`` from that.
    """
    begun: list[Any] = []

    def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
        begun.extend((int(status[:3]), headers))

    response: Any = wsgi_application(environ, start_response)
    if REFUSED in environ:
        begun[1].append(("connection", "close"))  # the body is not received
    try:
        body = b"" if protocol is None and hasattr(response, "stream") else b"".join(response)
        ready = Ready(begun[0], begun[1], body)
        if protocol and not is_large(ready):
            _send(protocol, ready)
    finally:
        response.close()
    if len(ready.body) > LARGE:
        trim()
    return ready, response


def _send(protocol: Any, ready: Ready) -> None:
    protocol.response_bytes(ready.status, ready.headers, ready.body)


def _refuse(protocol: Any, path: str, error: AppError, identifier: str) -> None:
    """Responds without the WSGI application or a thread, and without receiving the rest of the body."""
    headers = [
        ("content-type", "application/json"),
        ("connection", "close"),
        ("x-request-id", identifier),
        *error.headers.items(),
    ]
    token = request_id.set(identifier)
    try:
        body = orjson.dumps(log_and_render(path, error))
    finally:
        request_id.reset(token)
    protocol.response_bytes(error.status, headers, body)


def _count(scope: Any, route: str, status: int, seconds: float, identifier: str, caller: str = "") -> None:
    """Counts and logs a request that did not reach Django."""
    count_request(route, scope.method, status, seconds)
    if settings.ACCESS_LOG:
        log_request(
            route=route,
            method=scope.method,
            status=status,
            seconds=seconds,
            caller=caller,
            address=choose_address(
                get_peer(scope),
                scope.headers.get("x-forwarded-for") or "",
                is_behind_proxy=settings.BEHIND_PROXY,
            ),
            request_id=identifier,
        )


def make_environ(scope: Any, body: bytes) -> dict[str, Any]:
    """The WSGI environment (PEP 3333) of a request."""
    server, _, port = scope.server.rpartition(":")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": scope.path.encode().decode("latin-1"),
        "QUERY_STRING": scope.query_string.encode().decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "SERVER_NAME": server,
        "SERVER_PORT": port,
        "REMOTE_ADDR": get_peer(scope),
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.scheme,
        "wsgi.input": BytesIO(body),
        "wsgi.errors": None,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        BEGUN: perf_counter(),
    }
    for name, value in scope.headers.items():
        _add_header(environ, name, value)
    return environ


def _add_header(environ: dict[str, Any], name: str, value: str) -> None:
    if name == "content-type":
        environ["CONTENT_TYPE"] = value
    # The length is the received body's. A client's "x_y" header must not pass for a proxy's "x-y".
    elif name != "content-length" and "_" not in name:
        key = "HTTP_" + name.upper().replace("-", "_")
        separator = "; " if name == "cookie" else ","
        environ[key] = f"{environ[key]}{separator}{value}" if key in environ else value


application = Application()
