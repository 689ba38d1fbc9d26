"""Reads another installation and moves it."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from importer.moving.leave_out import Choice, leave_out
from importer.moving.reading.database import open_database
from importer.moving.reading.installation import Installation
from importer.moving.reading.read import read_installation
from importer.moving.reading.read_hidden import add_hidden, list_projects
from importer.moving.reading.source import Source
from importer.moving.report import Report
from importer.moving.writing.move import move


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedMove:
    """The wanted move: some projects or all, what the database at a URL has too, what was edited here too.

    ``left_out`` stays there.
    """

    projects: Sequence[str] = ()
    database: str = ""
    left_out: Sequence[Choice] = ()
    overwrite: bool = False
    by: str = ""
    """The person who asks for it, if it is no operator of this machine."""


def move_from(source: Source, wanted: WantedMove, *, write: bool) -> tuple[Installation, Report]:
    """Raises SourceError; then nothing is written."""
    with open_database(wanted.database) if wanted.database else nullcontext() as database:
        stored = list_projects(database) if database is not None else ()
        installation = read_installation(source, wanted.projects, stored)
        if database is not None:
            add_hidden(installation, database)
        leave_out(installation, wanted.left_out)
        return installation, move(installation, write=write, overwrite=wanted.overwrite, by=wanted.by)
