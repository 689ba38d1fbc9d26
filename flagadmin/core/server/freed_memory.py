"""Returns freed memory to the system after large responses and long work: malloc would keep the many small blocks."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

LARGE = 32 << 20  # bytes of a response
LONG = 1.0  # seconds of reading and compiling

_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it


def give_back() -> None:
    """Takes some milliseconds, in which other threads run."""
    if _trim is not None:
        _trim(0)


@contextmanager
def given_back() -> Iterator[None]:
    """A context manager and decorator for work that frees much of what it reads, if it takes long."""
    begun = perf_counter()
    try:
        yield
    finally:
        if perf_counter() - begun > LONG:
            give_back()
