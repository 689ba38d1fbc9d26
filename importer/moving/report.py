"""The report of a move, line by line."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from flagadmin.core.errors import list_some

MAX_NAMED = 5


class Kind(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    CONFLICT = "conflict"
    """Edited here since the last move. Left unchanged, unless overwriting is requested."""
    REFUSE = "refuse"
    """Prevents the whole move."""
    CANNOT = "cannot"
    """Cannot be moved and needs manual work."""
    LEAVE = "leave"
    """Is not moved at the user's request."""
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Line:
    """One result of a move, done or impossible. ``project`` is "" for shared objects.

    ``choice``: what to leave out so that everything else moves, if this is refused.
    """

    kind: Kind
    subject: str
    detail: str = ""
    project: str = ""
    flag: str = ""
    choice: str = ""

    def document(self) -> dict[str, str]:
        return {
            "kind": self.kind.value,
            "project": self.project,
            "subject": self.subject,
            "detail": self.detail,
            "flag": self.flag,
            "leaveOut": self.choice,
        }


@dataclass(slots=True)
class Report:
    """The report of a move, done or planned. ``same`` flags need no action."""

    lines: list[Line] = field(default_factory=list)
    same: int = 0

    @property
    def counts(self) -> dict[str, int]:
        counted = Counter(line.kind for line in self.lines)
        return {kind.value: counted[kind] for kind in Kind}

    @property
    def is_refused(self) -> bool:
        return any(line.kind is Kind.REFUSE for line in self.lines)

    @property
    def choices(self) -> list[str]:
        """The choices to leave out so that everything else moves."""
        return list(dict.fromkeys(line.choice for line in self.lines if line.choice))

    @property
    def has_conflicts(self) -> bool:
        return any(line.kind is Kind.CONFLICT for line in self.lines)

    @property
    def has_work(self) -> bool:
        """Whether there is anything to do, or would be without refusals."""
        return any(line.kind in (Kind.CREATE, Kind.CHANGE, Kind.REFUSE) for line in self.lines)

    @classmethod
    def load(cls, document: Mapping[str, Any]) -> "Report":
        """The report in a document, possibly of an earlier version."""
        lines = [
            Line(
                Kind(each["kind"]),
                each["subject"],
                each["detail"],
                each["project"],
                each.get("flag", ""),
                each.get("leaveOut", ""),
            )
            for each in document.get("lines", ())
        ]
        return cls(lines, document.get("counts", {}).get("same", 0))

    def document(self) -> dict[str, Any]:
        return {
            "counts": self.counts | {"same": self.same},
            "refused": self.is_refused,
            "lines": [each.document() for each in self.lines],
        }

    def texts(self) -> Iterator[str]:
        """A sentence for each line. New flags of a project share one line."""
        for line in self.join_lines():
            yield strip_controls(f"{line.kind:9}{line.subject}{': ' if line.detail else ''}{line.detail}")

    def join_lines(self) -> Iterator[Line]:
        """Joins new flags of a project into one line."""
        new: dict[str, list[str]] = {}
        for line in self.lines:
            if line.kind is Kind.CREATE and line.flag:
                new.setdefault(line.project, []).append(line.flag)
        for line in self.lines:
            if not (line.kind is Kind.CREATE and line.flag):
                yield line
            elif names := new.pop(line.project, []):
                subject = f"{name_some_flags(names)} of {line.project}"
                yield Line(Kind.CREATE, subject, project=line.project)


def strip_controls(text: str) -> str:
    """Strips line ends and terminal control characters: the text may come from another server."""
    return "".join(character if character.isprintable() else " " for character in text)


def name_some_flags(names: Iterable[str]) -> str:
    """``1 flag: a``, ``7 flags: a, b, c, d, e and 2 more``"""
    listed = list(names)
    return f"{len(listed):,} flag{'' if len(listed) == 1 else 's'}: {list_some(listed, MAX_NAMED)}"
