"""How old a relay's flags are: since the upstream last said that they are right, also after a restart."""

import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from relay.copy import Copy
from relay.storage import Storage
from relay.tokens import Answer, Tokens
from tests.support.event_loop import run
from tests.support.relay import BACKEND

TOKEN = {"token": BACKEND, "type": "client", "projects": ["shop"], "environment": "development"}
FLAGS = orjson.dumps({"version": 2, "features": [], "segments": []})


class Upstream:
    def __init__(self) -> None:
        self.answer = Answer(200, {"ETag": '"1"'}, FLAGS)

    async def ask(self, method: str, path: str, **more: Any) -> Answer:
        return self.answer


def start(folder: Path, upstream: Upstream) -> tuple[Copy, Storage]:
    storage = Storage(folder)
    storage.write("tokens.json", orjson.dumps([TOKEN]))
    return Copy(storage, upstream.ask, Tokens(storage, upstream.ask), interval=15), storage


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Its last entry is the time."""
    times = [time.time()]
    monkeypatch.setattr("relay.copy.time.time", lambda: times[-1])
    return times


def test_a_restart_keeps_what_was_confirmed(tmp_path: Path, clock: list[float]) -> None:
    upstream = Upstream()
    copy, storage = start(tmp_path, upstream)
    run(copy.look)
    clock.append(clock[-1] + 165)
    upstream.answer = Answer(304, {}, b"")
    run(copy.look)
    clock.append(clock[-1] + 40)
    assert copy.age() == pytest.approx(40, abs=1)
    storage.close()
    copy, storage = start(tmp_path, upstream)
    assert copy.age() == pytest.approx(40, abs=1)
    storage.close()


def test_a_confirmation_of_other_flags_does_not_count(tmp_path: Path, clock: list[float]) -> None:
    upstream = Upstream()
    copy, storage = start(tmp_path, upstream)
    run(copy.look)
    [confirmed] = [name.replace("flags-", "confirmed-") for name in storage.names("flags-")]
    clock.append(clock[-1] + 100)
    for content in (f'"other"\n{clock[-1]}'.encode(), b'"1"\nsoon', b"", b"\xff\n1"):
        storage.write(confirmed, content)
        storage.close()
        copy, storage = start(tmp_path, upstream)
        assert copy.age() == pytest.approx(100, abs=1)
    storage.close()
