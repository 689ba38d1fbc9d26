"""The report of a move, line by line."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from flagadmin.core.wording import list_some

MAX_NAMED = 5


class Kind(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    CONFLICT = "conflict"
    """Was edited here since the last move. It is left alone, unless it is to be overwritten."""
    REFUSE = "refuse"
    """Prevents the whole move."""
    CANNOT = "cannot"
    """Does not move; somebody has to see to it."""
    LEAVE = "leave"
    """Does not move, as the reader wishes."""
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that a move does, or cannot do. ``project`` is "" for what projects share.

    ``choice``: what is to be left out so that everything else moves, if this is refused.
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
    """The report of a move, done or planned. ``same`` flags need nothing."""

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
        """The choices that have to be left out so that everything else moves."""
        return list(dict.fromkeys(line.choice for line in self.lines if line.choice))

    @property
    def has_conflicts(self) -> bool:
        return any(line.kind is Kind.CONFLICT for line in self.lines)

    @property
    def has_work(self) -> bool:
        """Whether there is anything to do, or would be if it were not refused."""
        return any(line.kind in (Kind.CREATE, Kind.CHANGE, Kind.REFUSE) for line in self.lines)

    @classmethod
    def load(cls, document: Mapping[str, Any]) -> "Report":
        """The report of a document, which may be of an earlier version."""
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
        """A sentence for each line. New flags of a project are one line."""
        for line in self.join_lines():
            yield strip_controls(f"{line.kind:9}{line.subject}{': ' if line.detail else ''}{line.detail}")

    def join_lines(self) -> Iterator[Line]:
        """New flags of a project are one line."""
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
    """Strips line ends and what controls a terminal: the words may be those of another server."""
    return "".join(character if character.isprintable() else " " for character in text)


def name_some_flags(names: Iterable[str]) -> str:
    """``1 flag: a``, ``7 flags: a, b, c, d, e and 2 more``"""
    listed = list(names)
    return f"{len(listed):,} flag{'' if len(listed) == 1 else 's'}: {list_some(listed, MAX_NAMED)}"
