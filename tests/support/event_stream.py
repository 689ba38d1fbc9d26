"""Reads server-sent events as a client does, one connection after another."""

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

from tests.support.live_server import PATIENCE


class Event(NamedTuple):
    """``fields`` are all of the block: ``event``, ``id``, ``data``, ``retry``. A comment's is empty."""

    fields: dict[str, str]

    @property
    def name(self) -> str:
        return self.fields.get("event", "")

    @property
    def version(self) -> int:
        return int(self.fields["id"])

    @property
    def changes(self) -> list[dict[str, Any]]:
        changes: list[dict[str, Any]] = json.loads(self.fields["data"])["events"]
        return changes

    @property
    def kinds(self) -> list[str]:
        return [change["type"] for change in self.changes]


class Listener:
    """An open stream, or what was answered instead."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._response = connection.getresponse()
        self.status = self._response.status
        self.headers = self._response.headers
        self.blocks: list[Event] = []

    def body(self) -> Any:
        return json.loads(self._response.read())

    def next_block(self) -> Event | None:
        """The next block of lines, a comment too; None at the end."""
        fields: dict[str, str] = {}
        seen = False
        while line := self._response.readline():
            text = line.decode().rstrip("\n")
            if not text:
                self.blocks.append(Event(fields))
                return self.blocks[-1]
            seen = True
            name, _, value = text.partition(":")
            if name:
                fields[name] = value.removeprefix(" ")
        assert not seen, "the last block is not complete"
        return None

    def next(self) -> Event:
        """The next event. Comments keep a stream alive, but nobody waits for ever."""
        deadline = time.monotonic() + PATIENCE
        while (block := self.next_block()) is not None:
            if block.name:
                return block
            assert time.monotonic() < deadline, "nothing but comments"
        raise AssertionError("the stream has ended")

    def rest(self) -> list[Event]:
        """All that comes until the end, comments aside. Fails if there is none."""
        deadline, blocks = time.monotonic() + PATIENCE, []
        while (block := self.next_block()) is not None:
            blocks.append(block)
            assert time.monotonic() < deadline, "the stream does not end"
        return [block for block in blocks if block.fields]


@contextmanager
def listening(
    port: int, secret: str, last: int | str | None = None, path: str = "/api/client/streaming"
) -> Iterator[Listener]:
    """``last`` is the Last-Event-ID."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        headers = {"Authorization": secret, "Accept": "text/event-stream"}
        connection.request(
            "GET", path, headers=headers | ({} if last is None else {"Last-Event-ID": str(last)})
        )
        yield Listener(connection)
