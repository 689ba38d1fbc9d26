"""Bodies that a relay receives: whole, in time, and not too large."""

from types import SimpleNamespace

import pytest

from flagadmin.core.errors import PayloadTooLarge, RequestTimeout
from flagadmin.core.server import receiving
from relay import http
from tests.support.event_loop import Headers, run
from tests.support.sender import Sender

LENGTHS = (4, receiving.SMALL_BODY + 4, None)


def receive(sender: Sender, length: int | None) -> bytes:
    declared = ("transfer-encoding", "chunked") if length is None else ("content-length", str(length))
    scope = SimpleNamespace(
        method="POST", path="/", query_string="", client="127.0.0.1:5000", headers=Headers([declared])
    )

    async def work() -> bytes:
        request = await http.receive(scope, sender)
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
