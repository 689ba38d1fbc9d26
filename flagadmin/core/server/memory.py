"""The memory of a process that serves: what is loaded stays, cycles are sought rarely, freed memory is trimmed."""

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

YOUNG = 100_000  # new objects before the collector looks at them; Python's own is 700
LARGE = 32 << 20  # bytes of a response
LONG = 1.0  # seconds of reading and compiling

_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it


def settle() -> None:
    """Call this when everything is loaded: the collector never looks at that again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG)


def trim() -> None:
    """Returns freed memory to the system: malloc would keep the many small blocks.

    Takes some milliseconds, in which other threads run.
    """
    if _trim is not None:
        _trim(0)


@contextmanager
def trim_after_long_work() -> Iterator[None]:
    """A context manager and decorator for work that frees much of what it reads, if it takes long."""
    begun = perf_counter()
    try:
        yield
    finally:
        if perf_counter() - begun > LONG:
            trim()
