"""The largest request bodies are answered quickly, and the worker frees their memory."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.attack.installation import Installation, installation
from tests.attack.resources import BODIES
from tests.support.live_server import Client

pytestmark = pytest.mark.processes

SECONDS = 60  # generous: other tests run beside this one
MEGABYTES = 700
SOUND = (200, 202, 400, 413)


@pytest.fixture(scope="module")
def target(install: Callable[[Path], None]) -> Iterator[Installation]:
    with installation(workers=1, prepare=install) as made:
        yield made


def test_bodies_of_1_mb(target: Installation) -> None:
    found = {}
    for name, (key, method, path, body) in BODIES.items():
        with closing(Client(target.port, target.keys[key])) as client:
            began = time.perf_counter()
            status, answer = client.call(method, path, body or None)
        found[name] = (status, time.perf_counter() - began, len(answer))
    assert {name: one for name, one in found.items() if one[0] not in SOUND or one[1] > SECONDS} == {}
    refused = {name: size for name, (status, _, size) in found.items() if status >= 400 and size > 100_000}
    assert refused == {}
    assert target.worker_megabytes() < MEGABYTES
