"""Errors of these commands."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """``line`` is 0 if the problem concerns the whole file."""

    file: Path
    line: int
    message: str

    def __str__(self) -> str:
        location = f"{self.file}:{self.line}" if self.line else f"{self.file}"
        return f"{location}: {self.message}"


class ClientError(Exception):
    """The command cannot continue. The message gives the reason, and never contains the token."""


class BadFiles(ClientError):
    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(problems)
        super().__init__("\n".join(map(str, self.problems)))


class Refused(ClientError):
    """The server answered with an error record."""

    def __init__(self, status: int, message: str, details: list[dict[str, str]]) -> None:
        super().__init__(message)
        self.status, self.details = status, details
