"""Numbers in a file that is mapped into memory: they outlive the process that counts, and others can read them.

Each process writes a file of its own, all in one directory, so no process waits for another. A process that replaces a
killed one takes its file over and counts on.

prometheus_client's multiprocess mode does the same. There, a count and a histogram take 3 µs together, and reading 40
routes of three processes 11 ms, 500 routes 180 ms; here 1.2 µs, 0.6 ms and 10 ms.

A file begins with the offset at which its records end. A record is the length of its key, the number of its values, its
key, padded to eight bytes, and its values, doubles.
"""

import fcntl
import mmap
import os
import struct
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from threading import Lock
from typing import BinaryIO, cast

import orjson

SIZE = 2_000_000  # bytes of a file
SPARE = 64  # values at its end that stand for all records for which there is no more space
_END = struct.Struct("<Q")
_HEAD = struct.Struct("<II")

Key = tuple[str, ...]  # the name of an instrument, and the values of its labels


class Store:
    """The file of this process: the first of its role that no living process holds, such as ``worker-1``."""

    def __init__(self, directory: Path, role: str) -> None:
        self.lock = Lock()  # between threads
        self._file = _claim(directory, role)
        self.process = Path(self._file.name).name
        # Taken now: writing to a mapped file for which the disk has no space would kill the process.
        os.posix_fallocate(self._file.fileno(), 0, SIZE)
        self._map = mmap.mmap(self._file.fileno(), SIZE)
        self.values = memoryview(self._map).cast("d")
        self._end = end_of(self._map)
        self._places = {key: place for key, place, _ in records(self._map, _END.size, self._end)}

    def place(self, key: Key, width: int) -> int:
        """The index in ``values`` of the first of the key's ``width`` values. The caller holds the lock."""
        place = self._places.get(key)
        return self._add(key, width) if place is None else place

    def _add(self, key: Key, width: int) -> int:
        packed = orjson.dumps(key)
        packed += b" " * (-len(packed) % 8)
        start = self._end + _HEAD.size + len(packed)
        if start + 8 * (width + SPARE) > SIZE:
            return SIZE // 8 - SPARE
        _HEAD.pack_into(self._map, self._end, len(packed), width)
        self._map[start - len(packed) : start] = packed
        self._end = start + 8 * width
        _END.pack_into(self._map, 0, self._end)  # last, because others may be reading
        self._places[key] = start // 8
        return start // 8

    def close(self) -> None:
        self.values.release()
        self._map.close()
        self._file.close()


def _claim(directory: Path, role: str) -> BinaryIO:
    """The file opened and locked, until it is closed or the process ends."""
    for number in count(1):
        path = directory / f"{role}-{number}"
        path.touch(mode=0o600)
        file = path.open("r+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
        else:
            return file
    raise AssertionError


class Readout:
    """The file of any process, for reading."""

    def __init__(self, path: Path) -> None:
        self.process, self._path = path.name, path
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), SIZE, prot=mmap.PROT_READ)
        self._doubles = memoryview(self._map).cast("d")
        self._end = _END.size

    def new_records(self) -> Iterator[tuple[Key, int, int]]:
        """Those added since the last call, as :func:`records` gives them."""
        begin, self._end = self._end, end_of(self._map)
        return records(self._map, begin, self._end)

    def values(self) -> list[float]:
        """The whole file as doubles, of which those of the records mean something."""
        return cast("list[float]", self._doubles[: self._end // 8].tolist())

    def is_alive(self) -> bool:
        """Whether a process holds the file."""
        with self._path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False


def records(data: mmap.mmap, begin: int, end: int) -> Iterator[tuple[Key, int, int]]:
    """``(key, index of the first value, number of values)`` of the records between two offsets."""
    while begin < end:
        length, width = _HEAD.unpack_from(data, begin)
        start = begin + _HEAD.size + length
        yield tuple(orjson.loads(data[start - length : start])), start // 8, width
        begin = start + 8 * width


def end_of(data: mmap.mmap) -> int:
    """The offset at which the records of a file end."""
    return max(_END.size, int(_END.unpack_from(data)[0]))
