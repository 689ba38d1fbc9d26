"""The memory of a serving process: loaded objects stay, cycle detection is rare, freed memory is trimmed, and the stack
of a thread is one piece.
"""

import ctypes
import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import ContextDecorator, contextmanager
from functools import wraps
from threading import Lock
from time import monotonic, perf_counter
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

YOUNG = (
    25_000  # new objects before the collector looks at them; Python's own is 700. For 100,000 it takes 70 ms
)
MIDDLE = 40  # such looks before the collector also looks at the objects that have survived one
WARMING = 40  # looks
LARGE = 32 << 20  # bytes of a response
LONG = 1.0  # seconds of reading and compiling
MAX_PAUSE = 5.0  # seconds
# Slots of 8 bytes. A frame with as many takes just over a quarter of a megabyte, so CPython maps half a megabyte, and
# the frames of all that it calls find room in the rest. The slots are not touched, so they take no memory.
STACK_SLOTS = 32_000

# For malloc (mallopt(3)). By default glibc returns large freed blocks to the system, so a response of megabytes maps
# and clears its pages again each time, which took a quarter of the time of a request.
KEEP_FREED = {
    -1: 128 << 20,  # M_TRIM_THRESHOLD, in bytes
    -3: 32 << 20,  # M_MMAP_THRESHOLD: the maximum of glibc
    -8: 1,  # M_ARENA_MAX: threads allocate one at a time anyway, because of the GIL
}

_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
_set_option = getattr(ctypes.CDLL(None), "mallopt", None)


def keep_freed() -> None:
    """Makes malloc keep freed memory, also in forks. Call it first: arenas that a thread has made stay in use."""
    for option, value in KEEP_FREED.items():
        if _set_option is not None:
            _set_option(option, value)


def settle() -> None:
    """Call this after loading: the collector ignores the objects that exist now.

    Without a collection before: it took a sixth of a worker's time to start, and found 1 MB.
    """
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE)
    gc.callbacks.append(_Warming())
    gc.enable()


class _Warming:
    """Freezes the objects that survive the first collections: what the first requests load, and caches.

    A full collection would look at these 250,000 objects again and again, and all requests would wait for 140 ms. Of
    what requests use at those moments, only cycles stay for good.
    """

    def __init__(self) -> None:
        self._left = WARMING

    def __call__(self, phase: str, info: Mapping[str, int]) -> None:
        if phase == "stop":
            gc.freeze()
            self._left -= 1
            if not self._left:
                gc.callbacks.remove(self)


def trim() -> None:
    """Returns freed memory to the system: malloc would keep the many small blocks.

    Takes some milliseconds, in which other threads run.
    """
    if _trim is not None:
        _trim(0)


@contextmanager
def trim_after_long_work() -> Iterator[None]:
    """A context manager and decorator that trims memory after long work, which frees much of its input."""
    begun = perf_counter()
    try:
        yield
    finally:
        if perf_counter() - begun > LONG:
            trim()


class _CollectorPaused(ContextDecorator):
    """A context manager and decorator that pauses the search for cycles while any thread is inside.

    Only for work that creates many objects, keeps most of them and makes no cycles, where collection was measured to
    cost more than a tenth: reading 5,000 flags of the past took 420 ms instead of 310.

    Threads may overlap endlessly. So that the cycles of others do not pile up, a thread that leaves after ``MAX_PAUSE``
    without a collection lets the collector run until the next one enters.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._since = Lock(), 0, 0.0

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if gc.isenabled():
                self._since = monotonic()
                gc.disable()

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 or monotonic() - self._since > MAX_PAUSE:
                gc.enable()


collector_paused = _CollectorPaused()


def on_one_stack(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates the function that a thread begins with, if it calls others deeply: templates, forms, serializers.

    CPython 3.11 and 3.12 map a thread's stack in pieces of 16 KB, and unmap one when its first frame returns. A loop
    that calls across the end of a piece does both with each call (CPython's issue 142183): a list of 30 flags did
    4,900 times, which took half of the request.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(*args, **kwargs)

    call.__code__ = call.__code__.replace(co_stacksize=STACK_SLOTS)  # type: ignore[attr-defined]
    return call
