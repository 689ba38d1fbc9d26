"""What was edited here since the last move from the same address, and must not be overwritten without a word."""

from dataclasses import dataclass

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent

_HARMLESS = (
    EventType.FEATURE_FAVORITED,
    EventType.FEATURE_UNFAVORITED,
    EventType.PROJECT_FAVORITED,
    EventType.PROJECT_UNFAVORITED,
    EventType.FEATURES_EXPORTED,
)


@dataclass(frozen=True, slots=True)
class Edits:
    """``flags`` by name and environment, None if it is all of them; ``subjects`` by the start of the event's type."""

    flags: frozenset[tuple[str, str | None]] = frozenset()
    subjects: frozenset[tuple[str, str]] = frozenset()

    def has(self, kind: str, name: str) -> bool:
        """``kind`` is ``segment-`` for a segment, for example."""
        return any(subject == name and type_.startswith(kind) for type_, subject in self.subjects)

    def has_default_strategy(self, project: str, environment: str) -> bool:
        return (EventType.DEFAULT_STRATEGY_UPDATED.value, f"{project} {environment}") in self.subjects

    def has_flag(self, name: str, environment: str) -> bool:
        return not self.flags.isdisjoint({(name, environment), (name, None)})


def read_edits(address: str) -> Edits:
    """Events after the last move. Its own have the moment of its transaction, so they are not among them."""
    moves = AuditEvent.objects.filter(type=EventType.INSTALLATION_MOVED.value, subject=address)
    last = moves.newest_first().values_list("created_at", flat=True).first()
    if last is None:
        return Edits()
    later = AuditEvent.objects.filter(created_at__gt=last).exclude(type__in=_HARMLESS).order_by()
    rows = later.values_list("type", "project", "environment", "feature", "subject").distinct()
    flags, subjects = set(), set()
    for type_, project, environment, feature, subject in rows.iterator(2_000):
        if feature is not None:
            flags.add((feature, environment))
        elif type_ == EventType.DEFAULT_STRATEGY_UPDATED:
            subjects.add((type_, f"{project} {environment}"))
        elif subject is not None:
            subjects.add((type_, subject))
    return Edits(frozenset(flags), frozenset(subjects))
