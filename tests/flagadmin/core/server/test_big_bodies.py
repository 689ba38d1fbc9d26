"""The largest request bodies are answered, none takes for ever, and the worker frees their memory."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.attack.installation import Installation, installation
from tests.attack.resources import bodies
from tests.support.live_server import Client

pytestmark = [pytest.mark.processes, pytest.mark.exhaustive]

SECONDS = 120  # generous: what takes more than linear time takes minutes even on a quiet machine
MEGABYTES = 700
SOUND = (200, 202, 204, 400, 413)


@pytest.fixture(scope="module")
def target(install: Callable[[Path], None]) -> Iterator[Installation]:
    with installation(workers=1, prepare=install) as made:
        yield made


def test_bodies_of_1_mb_take_little_time_and_memory(target: Installation) -> None:
    found = {}
    for name, (key, method, path, body) in bodies().items():
        with closing(Client(target.port, target.keys[key], timeout=SECONDS)) as client:
            status, answer = client.call(method, path, body or None)
        found[name] = (status, len(answer))
    assert {name: one for name, one in found.items() if one[0] not in SOUND} == {}
    refused = {name: size for name, (status, size) in found.items() if status >= 400 and size > 100_000}
    assert refused == {}
    assert target.worker_megabytes() < MEGABYTES
