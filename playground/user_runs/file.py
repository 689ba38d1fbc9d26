"""Reads a CSV of users: its columns are context fields, and each row is a context.

Rows are counted as spreadsheets do: the header is row 1.
"""

import csv
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import chain, islice
from typing import IO

from flagadmin.core.errors import MAX_DETAILS, Problem, ValidationError, check_problems
from flagadmin.core.wording import choices
from playground.context_body import MAX_FIELDS, find_time_problem

MAX_ROWS = 100_000
MAX_VALUE_LENGTH = 1_000  # characters
PREFIX = "properties."
DELIMITERS = ",;\t"
User = tuple[int, dict[str, str]]
"""A row's number, and its values by field; an empty cell is a field that is not given."""


class UserFile:
    """A file that is being read, from its header on. Raises ValidationError for what is not CSV."""

    def __init__(self, stream: IO[bytes]) -> None:
        text = TextIOWrapper(stream, "utf-8-sig", newline="")
        try:
            first = text.readline()
        except UnicodeDecodeError as error:
            raise _not_text() from error
        delimiter = max(DELIMITERS, key=first.count)
        self._reader = csv.reader(chain([first], text), delimiter=delimiter, strict=True)
        self.columns = [name.strip() for name in next(self._read_rows(1), (1, []))[1]]
        self.fields = [name.removeprefix(PREFIX) for name in self.columns]

    def _read_rows(self, start: int) -> Iterator[tuple[int, list[str]]]:
        number = start - 1
        try:
            for number, row in enumerate(self._reader, start):
                if row:
                    yield number, row
        except UnicodeDecodeError as error:
            raise _not_text() from error
        except csv.Error as error:
            raise ValidationError.at(f"row {number + 1}", f"is not valid CSV: {error}") from error

    def users(self) -> Iterator[User]:
        """The rows of a file that was checked."""
        for number, row in self._read_rows(2):
            pairs = zip(self.fields, row, strict=True)
            yield number, {field: value for field, value in pairs if value}

    def check(self, known: Collection[str]) -> int:
        """The number of users. Raises ValidationError with the rows and columns that are wrong."""
        check_problems(list(self._header_problems(known)))
        count, problems = 0, list[Problem]()
        time = self.fields.index("currentTime") if "currentTime" in self.fields else None
        for number, row in self._read_rows(2):
            count += 1
            if count > MAX_ROWS:
                raise ValidationError.at("file", f"must have at most {MAX_ROWS:,} users")
            if len(problems) < MAX_DETAILS:
                problems += self._row_problems(number, row, time)
        if not count:
            raise ValidationError.at("file", "must have a row for each user below its header")
        check_problems(problems)
        return count

    def _header_problems(self, known: Collection[str]) -> Iterator[Problem]:
        if len(self.columns) > MAX_FIELDS:
            yield Problem("row 1", f"must have at most {MAX_FIELDS:,} columns, not {len(self.columns):,}")
            return
        if not any(self.columns):
            yield Problem("row 1", f"must name context fields. Available: {choices(known)}")
            return
        for position, (column, field) in enumerate(zip(self.columns, self.fields, strict=True), 1):
            if not field:
                yield Problem(f"row 1, column {position}", "has no name. Name a context field")
            elif self.fields.index(field) < position - 1:
                yield Problem(f"row 1, column {position}", f"{column[:100]} is there twice")
            elif column == field and field not in known:
                name = field[:100]
                message = f"{name} is not a context field. Available: {choices(known)}; or {PREFIX}{name}"
                yield Problem(f"row 1, column {position}", message)

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


@dataclass(frozen=True, slots=True)
class Sample:
    """Some users of a file, evenly spread."""

    fields: list[str]
    chosen: list[User]

    @classmethod
    def of(cls, file: UserFile, rows: int, wanted: int) -> "Sample":
        """Takes about ``wanted`` users of a checked file with this number of rows."""
        return cls(file.fields, list(islice(file.users(), 0, None, max(1, rows // wanted))))

    def users(self) -> Iterator[User]:
        return iter(self.chosen)


def _not_text() -> ValidationError:
    return ValidationError.at("file", 'must be UTF-8 text. Save it as "CSV UTF-8"')
