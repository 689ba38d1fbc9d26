"""Gives back to the system what large responses leave behind: many small freed blocks, which malloc would keep."""

import ctypes

LARGE = 32 << 20  # bytes of a response

_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it


def give_back() -> None:
    """Takes some milliseconds, in which other threads run."""
    if _trim is not None:
        _trim(0)
