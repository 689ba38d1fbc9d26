"""Runs the RSGI application in the test's own process, without a server."""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.db import connections

from flagadmin.rsgi import Application

Pairs = Sequence[tuple[str, str]]
P = ParamSpec("P")
T = TypeVar("T")


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    """Runs a coroutine in a thread of its own: this one may have the loop of a browser's tests."""

    async def awaited() -> Any:
        return await work()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(awaited())).result()


def in_loop(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Decorates a coroutine that is a test."""

    @functools.wraps(test)
    def decorated(*args: P.args, **kwargs: P.kwargs) -> None:
        run(lambda: test(*args, **kwargs))

    return decorated


def beside(
    start: Callable[[Callable[[T], Awaitable[None]]], Any],
) -> Callable[[Callable[Concatenate[T, P], Awaitable[None]]], Callable[P, None]]:
    """Makes a decorator of a function that runs a coroutine: a test's first argument is then what that one got."""

    def decorate(test: Callable[Concatenate[T, P], Awaitable[None]]) -> Callable[P, None]:
        @functools.wraps(test)
        def decorated(*args: P.args, **kwargs: P.kwargs) -> None:
            start(lambda given: test(given, *args, **kwargs))

        signature = inspect.signature(test)
        fixtures = list(signature.parameters.values())[1:]
        decorated.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return decorated

    return decorate


async def in_thread(work: Callable[[], Any]) -> Any:
    """Calls what uses the database."""

    def close_after() -> Any:
        try:
            return work()
        finally:
            connections.close_all()

    return await asyncio.to_thread(close_after)


async def until(condition: Callable[[], Any]) -> Any:
    """Waits until the condition returns a true value, and returns that. Raises TimeoutError after a minute."""
    async with asyncio.timeout(60):
        while not (found := condition()):
            await asyncio.sleep(0.005)
    return found


class Headers:
    """Granian's headers: names in small letters, several of the same name."""

    def __init__(self, pairs: Pairs) -> None:
        self._pairs = [(name.lower(), value) for name, value in pairs]

    def items(self) -> list[tuple[str, str]]:
        return self._pairs

    def get(self, name: str) -> str | None:
        return next((value for known, value in self._pairs if known == name), None)

    def __contains__(self, name: str) -> bool:
        return any(known == name for known, _ in self._pairs)


class Protocol:
    """Granian's protocol object: has a body, and keeps what was answered."""

    def __init__(self, body: bytes = b"") -> None:
        self._body = body
        self.sent: list[tuple[int, list[tuple[str, str]], bytes]] = []

    async def __call__(self) -> bytes:
        return self._body

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.sent.append((status, headers, body))


def scope(method: str, path: str, headers: Pairs = (("host", "localhost"),), scheme: str = "http") -> Any:
    path, _, query = path.partition("?")
    return SimpleNamespace(
        method=method,
        path=path,
        query_string=query,
        http_version="1.1",
        server="127.0.0.1:80",
        client="127.0.0.1:5000",
        scheme=scheme,
        headers=Headers(headers),
    )


async def ask(
    application: Application, request: Any, body: bytes = b""
) -> tuple[int, list[tuple[str, str]], bytes]:
    """Status, headers and body of the answer to this request."""
    protocol = Protocol(body)
    await application.__rsgi__(request, protocol)
    (answer,) = protocol.sent
    return answer
