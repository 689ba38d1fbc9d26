"""The RSGI application for Granian: an event loop receives requests, threads run the WSGI application.

A request takes a thread only from the arrival of its whole body until its response is complete, so a client
that sends or reads slowly blocks no other.
"""

import asyncio
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

import orjson
from django.conf import settings
from django.db import connections

from flagadmin.errors import AppError, AuthenticationRequired
from flagadmin.http.error_responses import as_app_error, is_api_path, logged_record
from flagadmin.http.middleware import REFUSED
from flagadmin.server import worker_processes as processes
from flagadmin.server.body_receiver import BodyReceiver
from flagadmin.server.sockets import drop_stalled_readers
from flagadmin.wsgi import application as wsgi_application
from groups.authentication import check_known


class Application:
    """The RSGI application. Granian calls ``__rsgi_init__`` once, then ``__rsgi__`` for each request."""

    def __init__(self) -> None:
        self.body_receiver = BodyReceiver(self.check_known)
        self.threads = ThreadPoolExecutor(settings.SERVER_THREADS, thread_name_prefix="request")
        # A separate pool, so that many anonymous requests do not delay authenticated ones.
        self.authentication_threads = ThreadPoolExecutor(2, thread_name_prefix="known")
        self.running_requests = 0

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        processes.set_stop_handler(_stopping_by_signal(), lambda: self.running_requests > 0)
        self._look_for_listener()

    def _look_for_listener(self) -> None:
        """Retries, because Granian starts listening only after ``__rsgi_init__``."""
        if not drop_stalled_readers():
            self.loop.call_later(0.1, self._look_for_listener)

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        headers = scope.headers
        if "content-length" not in headers and "transfer-encoding" not in headers:
            return await self.answer(scope, protocol, b"")
        try:
            async with self.body_receiver.receive(scope, protocol) as body:
                await self.answer(scope, protocol, body)
        except AppError as error:
            if is_api_path(scope.path):
                _refuse(protocol, error)
            else:
                await self.answer(scope, protocol, b"", refused=error)
        except EOFError:
            protocol.response_empty(400, [])  # the client has disconnected

    async def check_known(self, scope: Any) -> None:
        if "authorization" not in scope.headers and "cookie" not in scope.headers:
            raise AuthenticationRequired  # without a database query
        await self.loop.run_in_executor(self.authentication_threads, _check_known, environ_of(scope, b""))

    async def answer(
        self, scope: Any, protocol: Any, body: bytes, *, refused: AppError | None = None
    ) -> None:
        environ = environ_of(scope, body) | ({REFUSED: refused} if refused else {})
        self.running_requests += 1
        try:
            await self.loop.run_in_executor(self.threads, _answer, environ, protocol)
        finally:
            self.running_requests -= 1


def _stopping_by_signal() -> Any:
    """Returns a function that makes the loop handle SIGTERM, because the signal itself is blocked."""
    descriptor = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)
    return lambda: os.write(descriptor, bytes([signal.SIGTERM]))


def _check_known(environ: dict[str, Any]) -> None:
    """Raises AppError. Runs in a thread, because it queries the database."""
    try:
        check_known(environ)
    except Exception as error:
        raise as_app_error(error) from error
    finally:
        connections.close_all()


def _answer(environ: dict[str, Any], protocol: Any) -> None:
    """Runs the WSGI application, in a thread."""
    begun: list[Any] = []

    def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
        begun.extend((int(status[:3]), headers))

    response: Any = wsgi_application(environ, start_response)
    if REFUSED in environ:
        begun[1].append(("connection", "close"))  # the body is not received
    try:
        protocol.response_bytes(*begun, b"".join(response))
    finally:
        response.close()


def _refuse(protocol: Any, error: AppError) -> None:
    """Responds without using the WSGI application or a thread, and without receiving the rest of the body."""
    headers = [("content-type", "application/json"), ("connection", "close"), *error.headers.items()]
    protocol.response_bytes(error.status, headers, orjson.dumps(logged_record(error)))


def environ_of(scope: Any, body: bytes) -> dict[str, Any]:
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
        "REMOTE_ADDR": scope.client.rpartition(":")[0].strip("[]"),
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.scheme,
        "wsgi.input": BytesIO(body),
        "wsgi.errors": None,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in scope.headers.items():
        _add_header(environ, name, value)
    return environ


def _add_header(environ: dict[str, Any], name: str, value: str) -> None:
    if name == "content-type":
        environ["CONTENT_TYPE"] = value
    # The length is that of the received body. A client's "x_y" header must not pass for a proxy's "x-y".
    elif name != "content-length" and "_" not in name:
        key = "HTTP_" + name.upper().replace("-", "_")
        separator = "; " if name == "cookie" else ","
        environ[key] = f"{environ[key]}{separator}{value}" if key in environ else value


application = Application()
