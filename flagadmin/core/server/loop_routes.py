"""Paths that a worker's event loop answers without a thread, and tasks that run in it.

Apps register theirs in `AppConfig.ready`:

loop_routes.add_shortcut("/healthz", HealthShortcut())
loop_routes.add_stream("/api/client/streaming", stream)
loop_routes.run_in_loop(watcher.run)

Commands need not import it all: `hook.add("loop routes", "sdk.loop:register")` names a function that registers more.

Only GET requests without a body and POST requests to a few paths get here; Django answers everything else. Nothing here
may block: one loop serves all connections of a worker.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

log = logging.getLogger("flagadmin.server")

TASK_RESTART = 1.0  # seconds

Headers = list[tuple[str, str]]


class Ready(NamedTuple):
    """A complete response."""

    status: int
    headers: Headers
    body: bytes = b""
    request_id: str = ""
    route: str = ""
    """The URL pattern for metrics; empty if it is the path."""
    caller: str = ""
    """The kind of token, if it differs from the shortcut's."""


Learn = Callable[[Ready, Any], None]


class Shortcut(Protocol):
    """Answers a path from memory. Both methods run in the loop and must not raise.

    ``caller`` is the kind of token of all its callers, for the access log; "" if they need none.
    """

    caller: str

    def answer(self, scope: Any, body: bytes = b"") -> Ready | None:
        """The response to this RSGI request. None if it is not certain: then Django answers."""

    def learn(self, scope: Any, body: bytes = b"") -> Learn | None:
        """Called before Django answers. The result is called afterwards, in the loop, with Django's answer: the
        response as sent, and Django's own response object.
        """


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """``scope`` and ``protocol`` are Granian's (RSGI).

    ``stopping`` is set when the worker stops: the handler must then end its response soon. ``ask`` returns Django's
    answer as bytes and as a response object, without sending anything; if that object has a ``stream``, read the body
    from it. ``send`` sends an answer.
    """

    scope: Any
    protocol: Any
    stopping: asyncio.Event
    ask: Callable[[], Awaitable[tuple[Ready, Any]]]

    def send(self, ready: Ready) -> None:
        self.protocol.response_bytes(ready.status, ready.headers, ready.body)


StreamHandler = Callable[[StreamRequest], Coroutine[Any, Any, None]]
LoopTask = Callable[[], Coroutine[Any, Any, None]]

SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))

shortcuts: dict[str, Shortcut] = {}
posts: dict[str, Shortcut] = {}
streams: dict[str, StreamHandler] = {}
tasks: list[LoopTask] = []
evaluations: list[re.Pattern[str]] = []


def add_shortcut(path: str, shortcut: Shortcut) -> None:
    """Registers a shortcut for GET requests to exactly this path."""
    shortcuts[path] = shortcut


def add_post_shortcut(path: str, shortcut: Shortcut) -> None:
    """Registers a shortcut for POST requests to this path, or, if it ends with a slash, to all paths just below it."""
    posts[path] = shortcut


def find_post(path: str) -> Shortcut | None:
    return posts.get(path) or posts.get(path[: path.rfind("/") + 1])


def add_stream(path: str, handler: StreamHandler) -> None:
    """Registers a handler for GET requests for exactly this path. It runs as an asyncio task of its own."""
    streams[path] = handler


def add_evaluations(paths: re.Pattern[str]) -> None:
    """Registers paths that only read, although clients POST a context to them."""
    evaluations.append(paths)


def is_writing(method: str, path: str) -> bool:
    return method not in SAFE_METHODS and not any(pattern.fullmatch(path) for pattern in evaluations)


def run_in_loop(task: LoopTask) -> None:
    """Registers a task that starts with each worker's loop and is canceled when the worker stops.

    If it raises, the error is logged and the task restarts after a second.
    """
    if task not in tasks:
        tasks.append(task)


async def repeat(task: LoopTask) -> None:
    """Runs a task until it returns. Starts it again if it fails."""
    while True:
        try:
            return await task()
        except Exception:
            log.exception("A task of the event loop failed")
            await asyncio.sleep(TASK_RESTART)
