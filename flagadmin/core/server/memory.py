"""The memory of a serving process: loaded objects stay, cycle detection is rare, freed memory is trimmed."""

import ctypes
import gc
from collections.abc import Iterator, Mapping
from contextlib import ContextDecorator, contextmanager
from threading import Lock
from time import monotonic, perf_counter

YOUNG = (
    25_000  # new objects before the collector looks at them; Python's own is 700. For 100,000 it takes 70 ms
)
MIDDLE = 40  # such looks before the collector also looks at the objects that have survived one
WARMING = 40  # looks
LARGE = 32 << 20  # bytes of a response
LONG = 1.0  # seconds of reading and compiling
MAX_PAUSE = 5.0  # seconds

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
