"""What the event loop answers itself: shortcuts, streams, and tasks beside the requests."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import resolve

from flagadmin import rsgi, worker
from flagadmin.core.server import loop_routes, slow_clients
from flagadmin.core.server.loop_routes import Learn, Ready, StreamRequest
from tests.support import event_loop
from tests.support.event_loop import run, scope


class Remembering:
    """Answers what Django answered before."""

    caller = ""

    def __init__(self) -> None:
        self.known: Ready | None = None

    def answer(self, scope: Any, body: bytes = b"") -> Ready | None:
        return self.known

    def learn(self, scope: Any, body: bytes = b"") -> Learn | None:
        def learn(sent: Ready, response: Any) -> None:
            self.known = sent
            self.response = response

        return learn


@pytest.fixture(autouse=True)
def routes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, empty in (("shortcuts", {}), ("streams", {}), ("tasks", [])):
        monkeypatch.setattr(loop_routes, name, empty)
    monkeypatch.setattr(rsgi.processes, "set_stop_handler", lambda stop, is_busy: None)
    monkeypatch.setattr(rsgi, "_prepare_stop_by_signal", lambda: lambda: None)
    monkeypatch.setattr(slow_clients, "drop_stalled_readers", lambda: True)


@pytest.fixture
def application() -> Iterator[rsgi.Application]:
    made = rsgi.Application()
    yield made
    made.threads.shutdown()


def ask(application: rsgi.Application, *requests: tuple[str, str]) -> list[Any]:
    """The answer to each request (method, path)."""

    async def work() -> list[Any]:
        application.__rsgi_init__(asyncio.get_running_loop())
        return [await event_loop.ask(application, scope(*request)) for request in requests]

    return run(work)


def test_a_shortcut_learns_what_django_answered(application: rsgi.Application) -> None:
    shortcut = Remembering()
    loop_routes.add_shortcut("/healthz", shortcut)
    first, second = ask(application, ("GET", "/healthz"), ("GET", "/healthz"))
    assert first[0] == 200
    assert first == second
    assert shortcut.response.status_code == 200
    assert shortcut.known
    assert shortcut.known.body == shortcut.response.content


def test_other_methods_and_paths_are_djangos(application: rsgi.Application) -> None:
    shortcut = Remembering()
    shortcut.known = Ready(200, [], b"from memory")
    loop_routes.add_shortcut("/healthz", shortcut)
    head, options, longer, own = ask(
        application, ("HEAD", "/healthz"), ("OPTIONS", "/healthz"), ("GET", "/healthz/"), ("GET", "/healthz")
    )
    assert (head[0], options[0], longer[0]) == (200, 405, 404)
    assert own == (200, [], b"from memory")


def test_a_stream_runs_as_a_task_and_is_told_of_the_stop(application: rsgi.Application) -> None:
    seen = []

    async def stream(request: StreamRequest) -> None:
        async with asyncio.timeout(60):
            application._stop()
            await request.stopping.wait()
        seen.append(application.running_requests)
        request.protocol.response_bytes(200, [], b"over")

    loop_routes.add_stream("/stream", stream)
    assert ask(application, ("GET", "/stream")) == [(200, [], b"over")]
    assert (seen, application.running_requests) == ([1], 0)


def test_a_stream_can_leave_the_answer_to_django(application: rsgi.Application) -> None:
    async def stream(request: StreamRequest) -> None:
        ready, response = await request.ask()
        assert response.status_code == ready.status
        request.send(ready)

    loop_routes.add_stream("/healthz", stream)
    assert ask(application, ("GET", "/healthz"))[0][0] == 200


def test_a_task_that_fails_is_started_again_and_ends_with_the_worker(
    application: rsgi.Application, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loop_routes, "TASK_RESTART", 0)
    starts: list[int] = []
    again = asyncio.Event()

    async def task() -> None:
        starts.append(1)
        if len(starts) == 1:
            raise ValueError("once")
        again.set()
        await asyncio.Event().wait()

    async def work() -> bool:
        application.__rsgi_init__(asyncio.get_running_loop())
        await again.wait()
        application._stop()
        await asyncio.wait(application.tasks)
        return application.tasks[-1].cancelled()

    loop_routes.run_in_loop(task)
    assert run(work)
    assert len(starts) == 2
    assert "A task of the event loop failed" in caplog.text


@pytest.mark.parametrize(
    ("method", "path", "writes"),
    [
        ("GET", "/api/admin/projects", False),
        ("POST", "/api/admin/projects", True),
        ("DELETE", "/api/admin/projects/shop", True),
        ("POST", "/api/client/metrics", True),
        ("POST", "/api/frontend/client/metrics", True),
        ("POST", "/api/frontend", False),
        ("POST", "/api/frontend/", False),
        ("POST", "/api/proxy", False),
        ("POST", "/api/proxy/client/metrics", True),
        ("POST", "/ofrep/v1/evaluate/flags/checkout", False),
        ("POST", "/api/admin/playground/advanced", False),
        ("POST", "/login/", True),
    ],
)
def test_only_what_may_wait_for_a_commit_is_bounded(method: str, path: str, writes: bool) -> None:
    assert loop_routes.is_writing(method, path) is writes


def test_views_of_recent_short_paths_are_remembered() -> None:
    flag = "/api/admin/projects/{}/features/{}"
    first, other, again = (resolve(flag.format(*names)) for names in ("ab", "ba", "ab"))
    assert first is again
    assert (first.kwargs, other.kwargs) == (
        {"project_id": "a", "name": "b"},
        {"project_id": "b", "name": "a"},
    )
    long = flag.format("a", "b" * worker.MAX_LENGTH)
    assert resolve(long) is not resolve(long)
