"""Finds in the audit log what was edited here after a move from the same address created or changed it.

It must not be overwritten without a word, by this move or the next: it stays edited until a move writes it again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Max, OuterRef, Q, QuerySet, Subquery

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent

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
"""What happens to an environment of a project is known by both."""
_OF_HOLDERS = (
    EventType.PROJECT_ACCESS_ADDED,
    EventType.PROJECT_ACCESS_UPDATED,
    EventType.PROJECT_ACCESS_REMOVED,
)
"""What happens to the access of somebody to a project, likewise."""
FlagKey = tuple[str, str | None]
"""Name and environment, None if it is all of them."""
SubjectKey = tuple[str, str]
"""Type of the event and subject."""


@dataclass(slots=True)
class Latest:
    """The latest events of flags, also wherever they were, and of other subjects."""

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
    """The latest changes of others, and of moves."""

    others: Latest = field(default_factory=Latest)
    moves: Latest = field(default_factory=Latest)

    def has(self, kind: str, name: str) -> bool:
        """``kind`` is how types of its events begin: ``segment-``, for example."""
        return _is_later(self.others.of_subject(kind, name), self.moves.of_subject(kind, name))

    def has_default_strategy(self, project: str, environment: str) -> bool:
        return self.has(EventType.DEFAULT_STRATEGY_UPDATED, f"{project} {environment}")

    def has_removed_environment(self, project: str, environment: str) -> bool:
        """Of an environment that the project does not use."""
        return self.has("project-environment-", f"{project} {environment}")

    def has_access(self, project: str, holder: str) -> bool:
        return self.has("project-access-", f"{project} {holder}")

    def has_flag(self, name: str, environment: str) -> bool:
        """What all its environments share is no longer edited once a move has written the flag in any of them."""
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
    """Returns the comment, which also distinguishes events of moves from others."""
    return f"Moved from {address}{f' by {by}' if by else ''}"


def _is_own(address: str) -> Q:
    comment = comment_on_move(address)
    return Q(comment=comment) | Q(comment__startswith=f"{comment} by ")


def find_archived_by_moves(address: str, names: Iterable[str]) -> set[str]:
    """Finds the flags among ``names``, all archived, that a move from this address and nobody else has archived."""
    kinds = (EventType.FEATURE_CREATED, EventType.FEATURE_ARCHIVED)
    events = AuditEvent.objects.filter(feature__in=list(names), type__in=kinds)
    latest = events.filter(feature=OuterRef("feature")).newest_first().values("pk")[:1]
    own = events.filter(_is_own(address), pk=Subquery(latest)).values_list("feature", flat=True)
    return {name for name in own if name is not None}


def find_moved(address: str, names: Iterable[str]) -> set[str]:
    """Finds the flags among ``names`` that a move from this address has written."""
    events = AuditEvent.objects.filter(_is_own(address), feature__in=list(names))
    return {name for name in events.values_list("feature", flat=True).distinct() if name is not None}


def read_edits(address: str) -> Edits:
    """Reads the edits. Nothing before the first move counts: whoever moves first sees what would change."""
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
