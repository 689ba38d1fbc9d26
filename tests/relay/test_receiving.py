"""Bodies that a relay receives: whole, in time, and not too large."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from flagadmin.core.errors import PayloadTooLarge, RequestTimeout, ServiceUnavailable
from flagadmin.core.server import receiving
from relay import http
from tests.support.event_loop import Headers, run
from tests.support.sender import Sender

LENGTHS = (4, receiving.SMALL_BODY + 4, None)


def make_scope(length: int | None) -> Any:
    declared = ("transfer-encoding", "chunked") if length is None else ("content-length", str(length))
    return SimpleNamespace(
        method="POST", path="/", query_string="", client="127.0.0.1:5000", headers=Headers([declared])
    )


def receive(sender: Sender, length: int | None) -> bytes:
    async def work() -> bytes:
        request = await http.Receiver().receive(make_scope(length), sender)
        return request._body

    body: bytes = run(work)
    return body


@pytest.mark.parametrize("length", LENGTHS)
def test_a_whole_body_is_received(length: int | None) -> None:
    body = b"a" * (length or 4)
    assert receive(Sender(body[:2], body[2:]), length) == body


@pytest.mark.parametrize("length", LENGTHS)
def test_a_body_that_does_not_arrive_is_not_waited_for(
    length: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiving, "RECEIVE_TIMEOUT", 0.01)
    with pytest.raises(RequestTimeout):
        receive(Sender(b"{", then="hang"), length)


@pytest.mark.parametrize("length", LENGTHS)
def test_a_client_that_leaves_is_no_error(length: int | None) -> None:
    with pytest.raises(EOFError):
        receive(Sender(b"{", then="leave"), length)


@pytest.mark.parametrize("length", [http.MAX_BODY + 1, None])
def test_too_large_a_body_is_not_read_to_its_end(length: int | None) -> None:
    with pytest.raises(PayloadTooLarge):
        receive(Sender(*[b"a" * 1_000_000] * 5, then="hang"), length)


def test_bodies_together_have_so_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_BYTES", 200_000)
    receiver = http.Receiver()

    async def work() -> None:
        scope = make_scope(100_000)
        waiting = [
            asyncio.ensure_future(receiver.receive(scope, Sender(b"a" * 99_999, then="hang")))
            for _ in range(2)
        ]
        await asyncio.sleep(0)
        with pytest.raises(ServiceUnavailable):
            await receiver.receive(scope, Sender(b"a" * 100_000))
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        await receiver.receive(scope, Sender(b"a" * 100_000))

    run(work)
