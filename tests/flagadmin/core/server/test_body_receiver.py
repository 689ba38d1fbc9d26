"""Receiving request bodies: time limits, size limits, and limits on concurrent large bodies."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from flagadmin.core import errors
from flagadmin.core.http.request_bodies import limit_at
from flagadmin.core.server import receiving
from flagadmin.core.server import receiving as receiver_module
from flagadmin.core.server.receiving import BodyReceiver
from tests.support.event_loop import run
from tests.support.sender import Sender

IMPORT = "/api/admin/features-batch/import"


async def known(scope: Any) -> None:
    pass


async def unknown(scope: Any) -> None:
    raise errors.AuthenticationRequired


def received(
    sender: Sender, length: int | None = None, path: str = "/api/admin/playground", caller: Any = known
) -> bytes:
    async def receive() -> bytes:
        async with make_receiver(caller).receive(scope(length, path), sender) as body:
            return body

    return run(receive)


def make_receiver(caller: Any, **more: int) -> BodyReceiver:
    return BodyReceiver(caller, 1_000_000, limit_at, **more)


def scope(length: int | None, path: str) -> Any:
    return SimpleNamespace(headers={} if length is None else {"content-length": str(length)}, path=path)


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "RECEIVE_TIMEOUT", 0.01)
    monkeypatch.setattr(receiver_module, "SLOT_TIMEOUT", 0.01)


@pytest.mark.parametrize("length", [4, None])
def test_a_whole_body_is_received(length: int | None) -> None:
    assert received(Sender(b"ab", b"cd"), length) == b"abcd"


@pytest.mark.parametrize("length", [1000, 100_000, None])
def test_a_body_that_does_not_arrive(length: int | None, no_time: None) -> None:
    with pytest.raises(errors.RequestTimeout):
        received(Sender(b"{ ", then="hang"), length)


def test_a_body_that_keeps_arriving_has_more_time(no_time: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "BYTES_PER_SECOND", 1000)

    class Slow(Sender):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"a" * 100_000
            await asyncio.sleep(0.05)
            yield b"b"

    assert len(received(Slow(), 100_001)) == 100_001


@pytest.mark.parametrize(
    ("length", "path"), [(None, "/api/admin/playground"), (None, IMPORT), (2, "/login/")]
)
def test_a_client_that_leaves(length: int | None, path: str) -> None:
    with pytest.raises(EOFError):
        received(Sender(b"{", then="leave"), length, path)


def test_a_body_that_ends_early() -> None:
    with pytest.raises(EOFError):
        received(Sender(b"{"), 2)


@pytest.mark.parametrize("length", [1_000_001, None])
@pytest.mark.parametrize("path", ["/api/admin/playground", "/nowhere", "/api/admin/features-batch/nothing"])
def test_too_large_a_body_is_not_read_to_its_end(length: int | None, path: str) -> None:
    with pytest.raises(errors.PayloadTooLarge, match="larger than the 1 MB"):
        received(Sender(*[b"a" * 100_000] * 11, then="hang"), length, path)


@pytest.mark.parametrize("path", [IMPORT, IMPORT + "/"])
def test_an_import_may_be_larger(path: str) -> None:
    assert len(received(Sender(b"a" * 1_000_001), 1_000_001, path)) == 1_000_001


def test_large_bodies_have_few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver_module, "SLOT_TIMEOUT", 0.01)

    async def receive() -> None:
        body_receiver = make_receiver(known)

        def large() -> Any:
            return body_receiver.receive(scope(2_000_000, IMPORT), Sender(b"a" * 2_000_000))

        async with AsyncExitStack() as stack:
            for _ in range(receiver_module.MAX_LARGE_BODIES):
                await stack.enter_async_context(large())
            with pytest.raises(errors.ServiceUnavailable, match="large bodies"):
                await stack.enter_async_context(large())
        async with large():
            pass

    run(receive)


@pytest.mark.parametrize(
    ("path", "length"),
    [
        (IMPORT, receiving.SMALL_BODY + 1),
        ("/api/admin/playground", receiving.SMALL_BODY + 1),
        ("/ofrep/v1/evaluate/flags", receiving.SMALL_BODY + 1),
        ("/import/", 1_000_001),
    ],
)
def test_a_strangers_body_is_not_read(path: str, length: int) -> None:
    with pytest.raises(errors.AuthenticationRequired):
        received(Sender(then="hang"), length, path, caller=unknown)


@pytest.mark.parametrize("path", ["/login/", "/playground/", "/import/"])
def test_a_form_whose_session_has_ended_is_read(path: str) -> None:
    body = b"a" * (receiving.SMALL_BODY + 1)
    assert received(Sender(body), len(body), path, caller=unknown) == body


def test_a_strangers_body_may_be_small() -> None:
    body = b"a" * receiving.SMALL_BODY
    assert received(Sender(body), len(body), caller=unknown) == body
    assert received(Sender(body), None, caller=unknown) == body
    with pytest.raises(errors.PayloadTooLarge):
        received(Sender(body, b"a", then="hang"), None, caller=unknown)


def test_bodies_together_have_so_much_memory() -> None:
    async def receive() -> None:
        body_receiver = make_receiver(known, max_bytes=300_000)

        def whole(length: int = 100_000, then: str = "end") -> Any:
            return body_receiver.receive(scope(100_000, "/login/"), Sender(b"a" * length, then=then))

        async with AsyncExitStack() as stack:
            for _ in range(3):
                await stack.enter_async_context(whole())
            with pytest.raises(errors.ServiceUnavailable):
                await stack.enter_async_context(whole())
        for then in ("leave", "end"):
            with pytest.raises(EOFError):
                await AsyncExitStack().enter_async_context(whole(99_999, then))
        async with AsyncExitStack() as stack:
            for _ in range(3):
                await stack.enter_async_context(whole())

    run(receive)
