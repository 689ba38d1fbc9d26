"""A server in the test's own process that answers polls from memory, and says whether it did."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from flagadmin import rsgi
from flagadmin.core.server import loop_routes, slow_clients
from flagadmin.core.server.ready_answers import ReadyAnswers
from sdk.evaluation.shortcuts import add_shortcuts
from sdk.features.api import cache
from sdk.poll_shortcuts import PollAnswers, delta_answers, features_answers
from sdk.watcher import watcher
from sdk.watcher.watcher import Watcher
from tests.support import event_loop
from tests.support.cast import make_project, make_token
from tests.support.event_loop import in_thread, scope, until
from tests.support.flags import make_flag

FEATURES, DELTA = "/api/client/features", "/api/client/delta"
HOST = ("Host", "localhost")
ERROR_ID = re.compile(rb"[0-9a-f]{32}")
SPEC = ("Unleash-Client-Spec", "5.2.0")


class Server:
    """The RSGI application with a watcher, and whether it answered from memory."""

    def __init__(self) -> None:
        self.watcher = Watcher()
        self.shortcut = PollAnswers(self.watcher, features_answers.reads)
        self.application = rsgi.Application()
        self.from_memory = False

    async def ask(
        self,
        path: str,
        *headers: tuple[str, str],
        method: str = "GET",
        scheme: str = "http",
        certain: bool = True,
        body: bytes = b"",
    ) -> Any:
        """The answer, when the watcher is certain: it then comes from memory if it may."""
        if certain:
            await self.be_certain()
        if body:
            headers = (*headers, ("Content-Length", str(len(body))))
        request = scope(method, path, headers, scheme)
        find = {"GET": loop_routes.shortcuts.get, "POST": loop_routes.find_post if body else None}.get(method)
        shortcut = find(request.path) if find else None
        self.from_memory = bool(shortcut and shortcut.answer(request, body))
        return await event_loop.ask(self.application, request, body)

    async def be_certain(self) -> None:
        """Waits for the watcher's next read if it has been notified, or was kept from reading on a busy machine."""
        await until(lambda: self.watcher.state)

    async def ask_django(self, *request: Any, **more: Any) -> Any:
        kept = loop_routes.shortcuts, loop_routes.posts
        loop_routes.shortcuts, loop_routes.posts = {}, {}
        try:
            return await self.ask(*request, **more)
        finally:
            loop_routes.shortcuts, loop_routes.posts = kept

    async def warm_up(self, *headers: tuple[str, str], path: str = FEATURES, **more: Any) -> str:
        """Asks until the answer comes from memory. Returns its ETag."""
        async with asyncio.timeout(60):
            while True:
                _, answered, _ = await self.ask(path, *headers, **more)
                if self.from_memory:
                    return dict(answered).get("ETag", "")
                await asyncio.sleep(0.01)

    async def changes(self, work: Callable[[], Any]) -> None:
        """Waits until the watcher has read the change."""
        before = self.watcher._state
        await in_thread(work)
        await until(lambda: self.watcher._state is not before)


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    server = Server()
    loop_routes.add_shortcut(FEATURES, server.shortcut)
    loop_routes.add_shortcut(DELTA, PollAnswers(server.watcher, delta_answers.reads))
    add_shortcuts(server.watcher)
    loop_routes.run_in_loop(server.watcher.run)
    server.application.__rsgi_init__(asyncio.get_running_loop())
    try:
        await until(lambda: server.watcher.state)
        yield server
    finally:
        server.application._stop()
        await asyncio.wait(server.application.tasks)
        server.application.threads.shutdown()


def with_server(work: Callable[[Server], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with serving() as server:
            return await work(server)

    return event_loop.run(run)


in_server = event_loop.beside(with_server)


@pytest.fixture
def polling_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    shortcuts = {"/healthz": ReadyAnswers()}
    for name, own in (("shortcuts", shortcuts), ("posts", {}), ("streams", {}), ("tasks", [])):
        monkeypatch.setattr(loop_routes, name, own)
    # A busy machine may keep the watcher waiting; what must not be certain, tests say themselves.
    monkeypatch.setattr(watcher, "SURE_SECONDS", 60)
    monkeypatch.setattr(rsgi.processes, "set_stop_handler", lambda stop, is_busy: None)
    monkeypatch.setattr(rsgi, "_prepare_stop_by_signal", lambda: lambda: None)
    monkeypatch.setattr(slow_clients, "drop_stalled_readers", lambda: True)


@pytest.fixture
def polled_secret() -> Iterator[str]:
    make_project("shop")
    make_flag("a", enabled=True)
    make_flag("b", "default")
    cache.clear()
    yield make_token("backend", projects=["shop"], environment="production", name="sdk")
    cache.clear()


def comparable(answer: Any) -> Any:
    """Without the ids that every request and every error has."""
    status, headers, body = answer
    return (
        status,
        [(name, value) for name, value in headers if name != "X-Request-Id"],
        ERROR_ID.sub(b"", body),
    )
