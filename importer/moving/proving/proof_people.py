"""The people whose results a proof compares."""

from dataclasses import dataclass
from datetime import datetime
from io import BytesIO

from flagadmin.core.errors import ValidationError
from importer.moving.writing.keeping import SYSTEM
from playground.engine.context import Context, format_time
from playground.queries import list_known_fields
from playground.user_runs.file import UserFile
from projects.revision import read_revisions

MAX_USERS = 100_000
"""Generated ones, and those of a file."""


@dataclass(slots=True)
class People:
    """The contexts that are compared: saved contexts and users of a file, and generated users."""

    explicit: list[Context]
    users: int
    now: datetime

    @property
    def count(self) -> int:
        return len(self.explicit) + self.users


def read_users(csv: bytes, now: datetime) -> list[Context]:
    """A context for each row. Raises ValidationError with the rows and columns that are wrong."""
    if not csv:
        return []
    fields = list_known_fields(read_revisions(SYSTEM.readable_projects))
    count = UserFile(BytesIO(csv)).check(fields)
    if count > MAX_USERS:
        raise ValidationError.at("users", f"must have at most {MAX_USERS:,} users; this file has {count:,}")
    time = format_time(now)
    return [Context.of_texts(values, now=time) for _, values in UserFile(BytesIO(csv)).users()]
