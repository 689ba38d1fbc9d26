"""Files of users: what is read of them, and what is refused, by row and column."""

from io import BytesIO

import pytest

from flagadmin.core.errors import ValidationError
from playground.user_runs import file as file_module
from playground.user_runs.file import UserFile

KNOWN = {"userId", "country", "currentTime"}


def users(text: str | bytes) -> list[tuple[int, dict[str, str]]]:
    body = text if isinstance(text, bytes) else text.encode()
    assert UserFile(BytesIO(body)).check(KNOWN) > 0
    return list(UserFile(BytesIO(body)).users())


def problems(text: str | bytes) -> dict[str, str]:
    body = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(ValidationError) as refusal:
        UserFile(BytesIO(body)).check(KNOWN)
    return {problem.path: problem.message for problem in refusal.value.details}


def test_columns_are_fields():
    assert users('userId,properties.plan,country\r\n42,"pro, gold",NO\r\n7,,\r\n') == [
        (2, {"userId": "42", "plan": "pro, gold", "country": "NO"}),
        (3, {"userId": "7"}),
    ]


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_spreadsheets_write_other_delimiters(delimiter):
    text = delimiter.join(["userId", "country"]) + "\n" + delimiter.join(["Åse", "NO"])
    assert users(b"\xef\xbb\xbf" + text.encode()) == [(2, {"userId": "Åse", "country": "NO"})]


def test_empty_lines_are_counted():
    assert [number for number, _ in users("userId\n1\n\n3\n")] == [2, 4]


def test_unknown_columns_are_named_with_the_choices():
    assert problems("userId,contry,properties.contry,plan\n1,NO,NO,pro\n") == {
        "row 1, column 2": "contry is not a context field. Available: country, currentTime, userId; or properties.contry",
        "row 1, column 3": "properties.contry is there twice",
        "row 1, column 4": "plan is not a context field. Available: country, currentTime, userId; or properties.plan",
    }


def test_problems_are_told_by_row_and_column():
    found = problems("userId,currentTime\n1,2026-11-21T09:00:00Z\n2,tomorrow\n3\n" + "x" * 1_001 + ",\n")
    assert found == {
        "row 3, column currentTime": 'must be a date and time with its offset, for example 2026-11-21T09:00:00Z, not "tomorrow"',
        "row 4": "must have 2 cells as the header, not 1",
        "row 5, column userId": "must have at most 1,000 characters, not 1,001",
    }


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (b"", "row 1", "must name context fields"),
        (b"userId\n", "file", "must have a row for each user"),
        (b"userId,\n1,\n", "row 1, column 2", "has no name"),
        (b"userId\n\xff\n", "file", "must be UTF-8 text"),
        (b"\xff\n", "file", "must be UTF-8 text"),
        (b'userId\n"1\n', "row 2", "is not valid CSV"),
        (b'userId\n1\n"2"3\n', "row 3", "is not valid CSV"),
    ],
)
def test_not_a_file_of_users(text, path, message):
    assert message in problems(text)[path]


def test_too_many_users(monkeypatch):
    monkeypatch.setattr(file_module, "MAX_ROWS", 2)
    assert len(users("userId\n1\n2\n")) == 2
    assert problems("userId\n1\n2\n3\n") == {"file": "must have at most 2 users"}


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("," * 1_203, "row 1", "must have at most 1,000 columns, not 1,204"),
        ("," * 3_000_000, "row 1", "must have at most 1,000 columns, not 1,000,002 or more"),
        ("userId\n1\n2" + "," * 1_203, "row 3", "must have at most 1,000 columns, not 1,204"),
        ("userId\n1\n" + "x" * 3_000_000, "row 3", "must have at most 1,000,000 characters"),
        ('userId\n1\n"' + ",\n" * 2_000_000, "row 3", "must have at most 1,000,000 characters"),
        ('userId\n1\n"' + '","\n' * 2_000_000, "row 3", "must have at most 1,000,000 characters"),
        ("userId\n1\n" + "\n" * 2_000_000, "row 1000001", "a file must have at most 1,000,000 lines"),
        (
            "userId" + "".join(f",properties.p{n}" for n in range(999)) + ("\n" + "," * 999) * 20_001,
            "row 20002",
            "a file must have at most 20,000,000 cells: 20,000 users of 1,000 columns",
        ),
    ],
    ids=("columns", "header", "a later row", "characters", "inside quotes", "quotes", "empty lines", "cells"),
)
def test_lines_are_measured_before_they_are_read(text, place, message):
    assert problems(text) == {place: message}


def test_commas_in_quotes_are_no_columns():
    [(_, values)] = users('userId,country\n1,"' + "," * 1_000 + '"\n')
    assert values["country"] == "," * 1_000
