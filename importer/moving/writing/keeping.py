"""Creates what is missing and updates what differs, and reports the result."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from django.db import transaction

from flagadmin.core.db.transactions import run_and_roll_back
from flagadmin.core.errors import AppError
from groups.access import Caller
from importer.moving.report import Kind, Line

MAX_SHOWN = 120  # characters of a value
SYSTEM = Caller.system()
EDITED = "was edited here since the last move, and stays"
DELETED = "was deleted here since the last move, and stays away"


class Refused(Exception):
    """The move is refused: nothing is written. Its lines say why."""

    def __init__(self, lines: list[Line]) -> None:
        super().__init__(lines)
        self.lines = lines


def keep(
    subject: str,
    present: Any,
    document: Callable[[Any], Mapping[str, Any]],
    *,
    create: Callable[[], Any],
    update: Callable[[], Any],
    is_edited: bool,
    project: str = "",
) -> Iterator[Line]:
    """Creates the row or updates it. One that was edited here is left alone: its line says what would have changed."""
    if present is None:
        if is_edited:
            yield Line(Kind.CONFLICT, subject, DELETED, project)
            return
        create()
        yield Line(Kind.CREATE, subject, project=project)
        return
    before = document(present)
    after = run_and_roll_back(lambda: document(update())) if is_edited else document(update())
    if changes := describe_changes(before, after):
        yield change_line(subject, changes, project, is_edited=is_edited)


def change_line(subject: str, changes: str, project: str, *, is_edited: bool, flag: str = "") -> Line:
    if is_edited:
        return Line(Kind.CONFLICT, subject, f"{EDITED}: {changes}", project, flag)
    return Line(Kind.CHANGE, subject, changes, project, flag)


def try_alone(
    subject: str, work: Callable[[], Iterable[Line]], project: str = "", *, choice: str = ""
) -> list[Line]:
    """Returns the lines of the work. If it is not possible, nothing of it remains, and it is left to be done by hand.

    With a ``choice`` it is refused instead, until the reader chooses to leave that out.
    """
    try:
        with transaction.atomic():
            return list(work())
    except AppError as error:
        details = "; ".join(problem.message for problem in error.details) or error.message
        kind = Kind.REFUSE if choice else Kind.CANNOT
        return [Line(kind, subject, details, project, choice=choice)]


def describe_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{member} {shown(before.get(member))} → {shown(after.get(member))}"
        for member in {**before, **after}
        if before.get(member) != after.get(member)
    )


def shown(value: Any) -> str:
    text = "none" if value in (None, "", []) else str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
