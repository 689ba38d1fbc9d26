"""Reads a table of rows: context fields, the ``time`` at which something happened, and any other columns.

CSV with a header, or JSON lines; either may be compressed with gzip. Or Parquet. Sizes are checked before anything is
parsed.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import IO, Any, NamedTuple, cast

import orjson

from flagadmin.core.errors import MAX_DETAILS, Problem, ValidationError, check_problems
from playground.context_body import MAX_FIELDS, find_time_problem
from playground.engine.literals import to_text
from playground.outcomes.parquet import MAGIC, read_parquet
from playground.user_runs.evaluate import CHUNK_CELLS
from playground.user_runs.file import (
    MAX_LINES,
    MAX_ROW_LENGTH,
    MAX_VALUE_LENGTH,
    PREFIX,
    UserFile,
    find_header_problems,
)

TIME = "time"
_GZIP = b"\x1f\x8b"
MAX_ROWS = 2_000_000
MAX_BYTES = 8_000_000_000
"""Of a table once it is unpacked."""
MILLISECONDS = 100_000_000_000
"""Epochs from here on are milliseconds: as seconds they would be in the year 5138, as milliseconds they are in 1973."""


class TooLarge(ValidationError):
    """More than is answered at once."""


class Rows(NamedTuple):
    """Some rows: their numbers, the cells in the order of the columns, and their times in UTC."""

    numbers: list[int]
    cells: list[list[str]]
    times: list[datetime]


class Limits(NamedTuple):
    rows: int = MAX_ROWS
    cells: int = MAX_ROWS * MAX_FIELDS
    unpacked: int = MAX_BYTES


class Table:
    """A table that is being read, from its columns on. Raises ValidationError naming rows or lines.

    ``fields`` are the columns as context fields. Rows are counted as in spreadsheets: a header is row 1. Those later
    than ``until`` are refused. A table that is not ``timed`` needs no column time: all rows are of ``until``.
    """

    def __init__(
        self,
        stream: IO[bytes],
        *,
        until: datetime,
        limits: Limits = Limits(),  # noqa: B008
        timed: bool = True,
    ) -> None:
        self._until, self._limits = until, limits
        self._problems: list[Problem] = []
        unpacked = _unpack(stream, limits)
        lines = max(limits.rows + MAX_DETAILS, MAX_LINES)
        self._file: UserFile | _JsonLines
        if unpacked.peek(4).removeprefix(b"\xef\xbb\xbf")[:1] == b"{":
            self._row, self._file = "line", _JsonLines(unpacked, lines)
        else:
            self._row, self._file = "row", UserFile(unpacked, max_lines=lines)
        self.columns, self.fields = self._file.columns, self._file.fields
        # Any column may be a measure.
        check_problems(list(find_header_problems(self.columns, self.fields, self.columns)))
        if timed and TIME not in self.columns:
            raise ValidationError.at(f"{self._row} 1", f"must have a column {TIME}: when it happened")
        self._time = self.columns.index(TIME) if timed else None
        self._current = self.fields.index("currentTime") if "currentTime" in self.fields else None

    def chunks(self, size: int) -> Iterator[Rows]:
        """The rows, at most this many at once, fewer if they have many columns."""
        size = max(1, min(size, CHUNK_CELLS // len(self.columns)))
        checked = self._check_rows()
        while some := list(islice(checked, size)):
            check_problems(self._problems)
            yield Rows(*map(list, zip(*some, strict=True)))
        check_problems(self._problems)

    def _check_rows(self) -> Iterator[tuple[int, list[str], datetime]]:
        """Each row is checked before the next is read. Rows with problems are left out."""
        most = min(self._limits.rows, self._limits.cells // len(self.columns))
        count = 0
        for count, (number, row) in enumerate(self._file.read_rows(), 1):
            if count > most:
                raise TooLarge.at("file", f"must have at most {most:,} rows")
            time, problem = self._check(row)
            if problem:
                self._problems.append(Problem(f"{self._row} {number}{problem[0]}", problem[1]))
                if len(self._problems) >= MAX_DETAILS:
                    return
            elif time is not None:
                yield number, row, time
        if not count:
            raise ValidationError.at("file", "must have rows")

    def _check(self, row: list[str]) -> tuple[datetime | None, tuple[str, str] | None]:
        """The time of a row, or where in it there is which problem."""
        if len(row) != len(self.columns):
            return None, ("", f"must have {len(self.columns)} cells, not {len(row)}")
        if max(map(len, row)) > MAX_VALUE_LENGTH:
            return None, ("", f"must have at most {MAX_VALUE_LENGTH:,} characters in a cell")
        current = "" if self._current is None else row[self._current]
        if current and (message := find_time_problem(current)):
            return None, (", column currentTime", message)
        if self._time is None:
            return self._until, None
        time = read_time(row[self._time])
        if time is None or time > self._until:
            return None, (f", column {TIME}", _describe_time(row[self._time], time))
        return time, None


def _describe_time(text: str, time: datetime | None) -> str:
    if time is not None:
        return f"must not be in the future, as {text[:100]} is"
    return f'must be a time such as 2026-11-21T14:03:00Z, or seconds or milliseconds since 1970, not "{text[:100]}"'


def read_time(text: str) -> datetime | None:
    """A time in UTC, which ISO 8601 without an offset is too; None if it is none. Numbers are epochs."""
    text = text.strip()
    try:
        if text.replace(".", "", 1).isdecimal():
            number = float(text)
            return datetime.fromtimestamp(number / 1_000 if number >= MILLISECONDS else number, UTC)
        time = datetime.fromisoformat(text)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


class _JsonLines:
    """An object on each line, with the keys of the first: ``properties`` may be nested. Null is an empty cell."""

    def __init__(self, stream: IO[bytes], max_lines: int) -> None:
        self._max_lines = max_lines
        self._lines = enumerate(iter(lambda: stream.readline(MAX_ROW_LENGTH + 1), b""), 1)
        self._first = next(self._lines)
        self.columns = list(self._read(*self._first))
        self.fields = [name.removeprefix(PREFIX) for name in self.columns]
        self._places = {name: place for place, name in enumerate(self.columns)}

    def read_rows(self) -> Iterator[tuple[int, list[str]]]:
        yield self._make_row(*self._first)
        for number, line in self._lines:
            if number > self._max_lines:
                raise TooLarge.at(f"line {number}", f"a file must have at most {self._max_lines:,} lines")
            if not line.isspace():
                yield self._make_row(number, line)

    def _make_row(self, number: int, line: bytes) -> tuple[int, list[str]]:
        row = [""] * len(self.columns)
        for name, text in self._read(number, line).items():
            if name not in self._places:
                raise ValidationError.at(f"line {number}", f"{name[:100]} is not in the first line")
            row[self._places[name]] = text
        return number, row

    def _read(self, number: int, line: bytes) -> dict[str, str]:
        if len(line) > MAX_ROW_LENGTH:
            raise ValidationError.at(f"line {number}", f"must have at most {MAX_ROW_LENGTH:,} characters")
        try:
            found = orjson.loads(line.removeprefix(b"\xef\xbb\xbf"))
        except orjson.JSONDecodeError:
            found = None
        if not isinstance(found, dict):
            raise ValidationError.at(f"line {number}", "must be a JSON object")
        nested = found.pop("properties", None)
        if isinstance(nested, dict):
            found.update({PREFIX + name: value for name, value in nested.items()})
        if len(found) > MAX_FIELDS:
            raise ValidationError.at(f"line {number}", f"must have at most {MAX_FIELDS:,} members")
        for name, value in found.items():
            if isinstance(value, dict | list):
                raise ValidationError.at(f"line {number}", f"{name[:100]} must be a string or number")
        return {name: to_text(value) for name, value in found.items()}


class _Unpacked(io.RawIOBase):
    """The bytes of a stream, and not more than so many. Raises ValidationError."""

    def __init__(self, stream: IO[bytes], limits: Limits) -> None:
        self._stream, self._limits, self._left = stream, limits, limits.unpacked

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            some = self._stream.read(len(buffer))
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValidationError.at("file", "is not valid gzip data") from error
        self._left -= len(some)
        if self._left < 0:
            raise TooLarge.at("file", f"must have at most {self._limits.unpacked // 1_000_000:,} MB unpacked")
        buffer[: len(some)] = some
        return len(some)


def is_packed(body: bytes) -> bool:
    """Whether a table takes more memory than it has bytes."""
    return body.startswith((_GZIP, MAGIC))


def _unpack(stream: IO[bytes], limits: Limits) -> io.BufferedReader:
    # A reader around a reader would close it at its own end, and warn that its owner has not.
    packed = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)  # type: ignore[type-var]
    begin, opened = packed.peek(4), cast("IO[bytes]", packed)
    if begin.startswith(_GZIP):
        opened = cast("IO[bytes]", gzip.GzipFile(fileobj=opened))
    elif begin.startswith(MAGIC):
        opened = cast("IO[bytes]", read_parquet(opened))
    return io.BufferedReader(_Unpacked(opened, limits), 1 << 16)
