"""Reads a CSV of users: its columns are context fields, and each row is a context.

Rows are counted as in spreadsheets: the header is row 1. Lines are measured before `csv` parses them: it creates all
cells of a row in one step, which blocks the process.
"""

import csv
import gzip
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from itertools import islice
from typing import IO

import orjson
from django.utils import timezone

from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import MAX_DETAILS, Problem, ValidationError, check_problems, choices
from groups.access import Caller
from playground.context_body import MAX_FIELDS, find_time_problem
from playground.engine.context import Context, format_time
from playground.models import OwnUsers

MAX_ROWS = 100_000
MAX_LINES = 1_000_000
"""The maximum number of lines. Empty lines, and lines inside quotes, are not users but cost as much."""
MAX_CELLS = 20_000_000
MAX_HELD_CELLS = 2_000_000
"""The maximum number of cells in memory at a time: about 300 MB."""
MAX_ROW_LENGTH = 1_000_000  # characters
MAX_VALUE_LENGTH = 1_000  # characters
PREFIX = "properties."
DELIMITERS = ",;\t"
User = tuple[int, dict[str, str]]
"""A row's number, and its values by field; an empty cell is a missing field."""
_QUOTED = re.compile(r'"[^"]*+"')
csv.field_size_limit(
    MAX_ROW_LENGTH
)  # for the whole process: rows are measured before, with a clearer message


class _Lines(Iterator[str]):
    """The lines of a text, measured. Raises ValidationError if one, or its row, would have too many cells.

    It does not refer to the file that reads it: such a cycle would keep the body of a refused request, which may be
    60 MB, until the next garbage collection.
    """

    def __init__(self, text: TextIOWrapper, max_lines: int) -> None:
        self._text, self._max_lines = text, max_lines
        self._first = text.readline(MAX_ROW_LENGTH + 1)
        self.delimiter = max(DELIMITERS, key=self._first.count)
        # The number and the length of the current row, and the number of lines so far.
        self.row, self._length, self._number = 1, 0, 0

    def begin_row(self) -> int:
        """Returns the number of the row that is complete."""
        self.row, self._length = self.row + 1, 0
        return self.row - 1

    def __next__(self) -> str:
        line, self._first = self._first or self._text.readline(MAX_ROW_LENGTH + 1), ""
        if not line:
            raise StopIteration
        self._number += 1
        self._length += len(line)
        row, is_cut = f"row {self.row}", self._length > MAX_ROW_LENGTH
        if line.count(self.delimiter) >= MAX_FIELDS:
            columns = _QUOTED.sub("", line).count(self.delimiter) + 1
            if columns > MAX_FIELDS:
                number = f"{columns:,}{' or more' if is_cut else ''}"
                raise ValidationError.at(row, f"must have at most {MAX_FIELDS:,} columns, not {number}")
        if is_cut:
            raise ValidationError.at(row, f"must have at most {MAX_ROW_LENGTH:,} characters")
        if self._number > self._max_lines:
            raise ValidationError.at(row, f"a file must have at most {self._max_lines:,} lines")
        return line


class UserFile:
    """A file that is being read, starting with its header. Raises ValidationError if it is not CSV."""

    def __init__(self, stream: IO[bytes], *, max_lines: int = MAX_LINES) -> None:
        try:
            self._lines = _Lines(TextIOWrapper(stream, "utf-8-sig", newline=""), max_lines)
        except UnicodeDecodeError as error:
            raise _not_text() from error
        self._reader = csv.reader(self._lines, delimiter=self._lines.delimiter, strict=True)
        self.columns = [name.strip() for name in next(self.read_rows(), (1, []))[1]]
        self.fields = [name.removeprefix(PREFIX) for name in self.columns]

    def read_rows(self) -> Iterator[tuple[int, list[str]]]:
        """The rows below the header with their numbers, unchecked. Raises ValidationError."""
        try:
            for row in self._reader:
                number = self._lines.begin_row()
                if row:
                    yield number, row
        except UnicodeDecodeError as error:
            raise _not_text() from error
        except csv.Error as error:
            raise ValidationError.at(f"row {self._lines.row}", f"is not valid CSV: {error}") from error

    def users(self) -> Iterator[User]:
        """The rows of a checked file."""
        for number, row in self.read_rows():
            pairs = zip(self.fields, row, strict=True)
            yield number, {field: value for field, value in pairs if value}

    def check(
        self,
        known: Collection[str],
        *,
        rows: int | None = None,
        cells: int = MAX_CELLS,
        called: str = "users",
    ) -> int:
        """The number of users, named ``called`` in errors: at most ``rows``, and ``cells`` including empty ones.

        Raises ValidationError with the rows and columns of the problems.
        """
        self.check_header(known)
        rows = MAX_ROWS if rows is None else rows
        count, problems = 0, list[Problem]()
        time = self.fields.index("currentTime") if "currentTime" in self.fields else None
        for number, row in self.read_rows():
            count += 1
            if count > rows:
                raise ValidationError.at("file", f"must have at most {rows:,} {called}")
            if count * len(self.fields) > cells:
                most = (
                    f"{cells:,} cells: {cells // len(self.fields):,} {called} of {len(self.fields):,} columns"
                )
                raise ValidationError.at(f"row {number}", f"a file must have at most {most}")
            problems += self._row_problems(number, row, time)
            if len(problems) >= MAX_DETAILS:
                break
        if not count:
            raise ValidationError.at("file", "must have a row for each user below its header")
        check_problems(problems)
        return count

    def check_header(self, known: Collection[str]) -> None:
        check_problems(list(find_header_problems(self.columns, self.fields, known)))

    def _row_problems(self, number: int, row: list[str], time: int | None) -> Iterator[Problem]:
        if len(row) != len(self.fields):
            yield Problem(
                f"row {number}", f"must have {len(self.fields)} cells as the header, not {len(row)}"
            )
            return
        if max(map(len, row)) > MAX_VALUE_LENGTH:
            for column, value in zip(self.columns, row, strict=True):
                if len(value) > MAX_VALUE_LENGTH:
                    message = f"must have at most {MAX_VALUE_LENGTH:,} characters, not {len(value):,}"
                    yield Problem(f"row {number}, column {column}", message)
        elif time is not None and row[time] and (message := find_time_problem(row[time])):
            yield Problem(f"row {number}, column {self.columns[time]}", message)


def find_header_problems(
    columns: Sequence[str], fields: Sequence[str], known: Collection[str]
) -> Iterator[Problem]:
    """``fields`` are the columns without their prefix. ``known`` are those that need none."""
    if len(columns) > MAX_FIELDS:
        yield Problem("row 1", f"must have at most {MAX_FIELDS:,} columns, not {len(columns):,}")
        return
    if not any(columns):
        yield Problem("row 1", f"must name context fields. Available: {choices(known)}")
        return
    for position, (column, field) in enumerate(zip(columns, fields, strict=True), 1):
        if not field:
            yield Problem(f"row 1, column {position}", "has no name. Name a context field")
        elif fields.index(field) < position - 1:
            yield Problem(f"row 1, column {position}", f"{column[:100]} is there twice")
        elif column == field and field not in known:
            name = field[:100]
            message = f"{name} is not a context field. Available: {choices(known)}; or {PREFIX}{name}"
            yield Problem(f"row 1, column {position}", message)


@dataclass(frozen=True, slots=True)
class Sample:
    """Some users of a file, evenly spread."""

    fields: list[str]
    chosen: list[User]

    @classmethod
    def of(cls, file: UserFile, rows: int, wanted: int) -> "Sample":
        """Takes about ``wanted`` users, fewer if they have many columns, of a checked file with this number of rows."""
        wanted = max(1, min(wanted, MAX_HELD_CELLS // len(file.fields)))
        return cls(file.fields, list(islice(file.users(), 0, None, max(1, rows // wanted))))

    def users(self) -> Iterator[User]:
        return iter(self.chosen)


def _not_text() -> ValidationError:
    return ValidationError.at("file", 'must be UTF-8 text. Save it as "CSV UTF-8"')


MAX_OWN_USERS = 10_000
"""The maximum number of users kept; they are spread evenly over a longer file."""


OwnUser = dict[str, str]


@transactional
def keep_own_users(body: bytes, rows: int, *, file_name: str, caller: Caller) -> None:
    """Keeps users of a checked file with this number of rows, replacing earlier ones."""
    sample = Sample.of(UserFile(BytesIO(body)), rows, MAX_OWN_USERS)
    users = _spread([values for _, values in sample.users()], MAX_OWN_USERS)
    columns = {
        "file_name": file_name[:255] or "users.csv",
        "number": len(users),
        "body": gzip.compress(orjson.dumps(users), 1),
    }
    OwnUsers.objects.update_or_create(user=caller.user, defaults=columns)


@transactional
def forget_own_users(caller: Caller) -> None:
    OwnUsers.objects.filter(user=caller.user).delete()


def find_own_users(caller: Caller) -> OwnUsers | None:
    """The caller's kept users, without their values. Tokens keep none."""
    if caller.user is None:
        return None
    return OwnUsers.objects.filter(user=caller.user).defer("body").first()


def read_own_users(caller: Caller) -> bytes | None:
    """The caller's kept users as lines of JSON."""
    own = find_own_users(caller)
    if own is None:
        return None
    users = load_own_users(own)
    fields = dict.fromkeys(name for user in users for name in user)
    return b"\n".join(orjson.dumps({PREFIX + name: user.get(name) for name in fields}) for user in users)


def make_own_contexts(own: OwnUsers, most: int) -> list[Context]:
    """Returns at most this many of the users, evenly spread."""
    now = format_time(timezone.now())
    return [Context.of_texts(texts, now=now) for texts in _spread(load_own_users(own), most)]


def load_own_users(own: OwnUsers) -> list[OwnUser]:
    users: list[OwnUser] = orjson.loads(gzip.decompress(bytes(own.body)))
    return users


def _spread(users: list[OwnUser], most: int) -> list[OwnUser]:
    number = min(most, len(users))
    return [users[index * len(users) // number] for index in range(number)]
