"""A file of users is freed with its answer: its body may be 60 MB, and the garbage collector rarely looks."""

import gc
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from weakref import ref

import pytest

from flagadmin.core.errors import ValidationError
from playground.user_runs.file import UserFile


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def read(body: bytes) -> ref[BytesIO]:
    stream = BytesIO(body)
    freed = ref(stream)
    with suppress(ValidationError):
        UserFile(stream).check({"userId"})
    return freed


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"," * 2_000, id="a refused header"),
        pytest.param(b"userId\n" + b"," * 2_000, id="a refused row"),
        pytest.param(b"userId\n1\n2\n", id="accepted"),
    ],
)
def test_it_is_in_no_reference_cycle(body: bytes) -> None:
    assert read(body)() is None
