"""Returns freed memory to the system after large responses: malloc would keep the many small blocks."""

import ctypes

LARGE = 32 << 20  # bytes of a response

_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it


def give_back() -> None:
    """Takes some milliseconds, in which other threads run."""
    if _trim is not None:
        _trim(0)
