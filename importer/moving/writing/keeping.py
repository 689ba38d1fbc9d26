"""Creates missing objects, updates different ones, and reports the result, without overwriting edits made here.

Edits made here are never silently overwritten, by this move or the next: they stay until a move with permission to
overwrite replaces them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max, OuterRef, Q, QuerySet, Subquery

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.transactions import run_and_roll_back
from flagadmin.core.errors import AppError
from groups.access import Caller
from importer.moving.report import Kind, Line

MAX_SHOWN = 120  # characters of a value
SYSTEM = Caller.system()
EDITED = "was edited here since the last move, and stays"
DELETED = "was deleted here since the last move, and stays away"


class Refused(Exception):
    """The move is refused, and nothing is written. Its lines give the reasons."""

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
    """Creates the row or updates it. Leaves a row that was edited here unchanged, with a line about the difference."""
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
    """The lines of the work. If it fails, it is rolled back and left to manual work.

    With a ``choice`` it is refused instead, until the user chooses to leave that out.
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


_HARMLESS = (
    EventType.FEATURE_FAVORITED,
    EventType.FEATURE_UNFAVORITED,
    EventType.PROJECT_FAVORITED,
    EventType.PROJECT_UNFAVORITED,
    EventType.FEATURES_EXPORTED,
    EventType.USER_LOGGED_IN,
    EventType.USER_LOGIN_FAILED,
    EventType.USER_LOGGED_OUT_EVERYWHERE,
    EventType.USER_SESSION_ENDED,
)
_OF_ENVIRONMENTS = (
    EventType.DEFAULT_STRATEGY_UPDATED,
    EventType.PROJECT_ENVIRONMENT_ADDED,
    EventType.PROJECT_ENVIRONMENT_REMOVED,
)
"""Events of a project's environment, which belong to both."""
_OF_HOLDERS = (
    EventType.PROJECT_ACCESS_ADDED,
    EventType.PROJECT_ACCESS_UPDATED,
    EventType.PROJECT_ACCESS_REMOVED,
)
"""Events of a holder's access to a project, likewise."""
FlagKey = tuple[str, str | None]
"""Name and environment, None for all environments."""
SubjectKey = tuple[str, str]
"""Type of the event and subject."""


@dataclass(slots=True)
class Latest:
    """The latest events of flags, by place and overall, and of other subjects."""

    flags: dict[FlagKey, datetime] = field(default_factory=dict)
    anywhere: dict[str, datetime] = field(default_factory=dict)
    subjects: dict[SubjectKey, datetime] = field(default_factory=dict)

    def of_flag(self, name: str, environment: str) -> datetime | None:
        return _find_latest(self.flags, ((name, environment), (name, None)))

    def add_flag(self, name: str, environment: str | None, at: datetime) -> None:
        self.flags[name, environment] = max(at, self.flags.get((name, environment), at))
        self.anywhere[name] = max(at, self.anywhere.get(name, at))

    def of_subject(self, kind: str, name: str) -> datetime | None:
        return _find_latest(
            self.subjects, [key for key in self.subjects if key[1] == name and key[0].startswith(kind)]
        )


def _find_latest(times: Mapping[Any, datetime], keys: Iterable[Any]) -> datetime | None:
    return max((times[key] for key in keys if key in times), default=None)


@dataclass(frozen=True, slots=True)
class Edits:
    """The latest changes by others, and by moves."""

    others: Latest = field(default_factory=Latest)
    moves: Latest = field(default_factory=Latest)

    def has(self, kind: str, name: str) -> bool:
        """``kind`` is the prefix of its event types, for example ``segment-``."""
        return _is_later(self.others.of_subject(kind, name), self.moves.of_subject(kind, name))

    def has_default_strategy(self, project: str, environment: str) -> bool:
        return self.has(EventType.DEFAULT_STRATEGY_UPDATED, f"{project} {environment}")

    def has_removed_environment(self, project: str, environment: str) -> bool:
        """For an environment that the project does not use."""
        return self.has("project-environment-", f"{project} {environment}")

    def has_access(self, project: str, holder: str) -> bool:
        return self.has("project-access-", f"{project} {holder}")

    def has_flag(self, name: str, environment: str) -> bool:
        """The shared part of a flag no longer counts as edited once a move has written the flag in any environment."""
        others, moves = self.others.flags, self.moves
        return _is_later(others.get((name, environment)), moves.of_flag(name, environment)) or _is_later(
            others.get((name, None)), moves.anywhere.get(name)
        )

    @property
    def flag_names(self) -> set[str]:
        return {name for name, _ in self.others.flags}


def _is_later(edited: datetime | None, moved: datetime | None) -> bool:
    return edited is not None and (moved is None or edited > moved)


def comment_on_move(address: str, by: str = "") -> str:
    """The comment, which also distinguishes events of moves from others."""
    return f"Moved from {address}{f' by {by}' if by else ''}"


def _is_own(address: str) -> Q:
    comment = comment_on_move(address)
    return Q(comment=comment) | Q(comment__startswith=f"{comment} by ")


def find_archived_by_moves(address: str, names: Iterable[str]) -> set[str]:
    """The flags among the archived ``names`` that were last archived by a move from this address."""
    kinds = (EventType.FEATURE_CREATED, EventType.FEATURE_ARCHIVED)
    events = AuditEvent.objects.filter(feature__in=list(names), type__in=kinds)
    latest = events.filter(feature=OuterRef("feature")).newest_first().values("pk")[:1]
    own = events.filter(_is_own(address), pk=Subquery(latest)).values_list("feature", flat=True)
    return {name for name in own if name is not None}


def find_moved(address: str, names: Iterable[str]) -> set[str]:
    """The flags among ``names`` that a move from this address has written."""
    events = AuditEvent.objects.filter(_is_own(address), feature__in=list(names))
    return {name for name in events.values_list("feature", flat=True).distinct() if name is not None}


def read_edits(address: str) -> Edits:
    """Reads the edits. Edits before the first move do not count: its plan shows the changes."""
    moves = AuditEvent.objects.filter(type=EventType.INSTALLATION_MOVED.value, subject=address)
    first = moves.order_by("created_at").values_list("created_at", flat=True).first()
    if first is None:
        return Edits()
    own = _is_own(address)
    others = _read(AuditEvent.objects.filter(created_at__gt=first).exclude(type__in=_HARMLESS).exclude(own))
    names, subjects = {name for name, _ in others.flags}, {subject for _, subject in others.subjects}
    in_question = Q(feature__in=names) | Q(feature=None, subject__in=subjects)
    in_question |= Q(type__in=(*_OF_ENVIRONMENTS, *_OF_HOLDERS))
    return Edits(others, _read(AuditEvent.objects.filter(own, in_question)))


def _read(events: QuerySet[AuditEvent]) -> Latest:
    latest = Latest()
    rows = events.order_by().values_list("type", "project", "environment", "feature", "subject")
    for type_, project, environment, feature, subject, at in rows.annotate(at=Max("created_at")).iterator(
        2_000
    ):
        if feature is not None:
            latest.add_flag(feature, environment, at)
        else:
            named = _name(type_, project, environment, subject)
            latest.subjects[type_, named] = max(at, latest.subjects.get((type_, named), at))
    return latest


def _name(kind: str, project: str | None, environment: str | None, subject: str | None) -> str:
    if kind in _OF_ENVIRONMENTS:
        return f"{project} {environment}"
    return f"{project} {subject}" if kind in _OF_HOLDERS else subject or ""
