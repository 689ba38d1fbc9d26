"""Operations that share a test: making the world takes longer than most of their requests."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
from django.db import transaction

T = TypeVar("T")
BATCH_SIZE = 16


@contextmanager
def undone() -> Iterator[None]:
    """What is written inside is rolled back, so that the next call finds the same world."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def in_batches(argument: str, items: Iterable[T], name: Callable[[T], str] = str) -> Any:
    """Parametrizes ``argument`` with lists of items; each list is named for its first."""
    every = list(items)
    batches = [every[start : start + BATCH_SIZE] for start in range(0, len(every), BATCH_SIZE)]
    return pytest.mark.parametrize(argument, batches, ids=lambda batch: name(batch[0])[:90])
