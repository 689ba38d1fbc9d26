"""Loads the strategy types, legal values, segments and tag types that flags of a project may use."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from projects.models import ContextField, Segment, StrategyType, TagType

_are_limited: ContextVar[bool] = ContextVar("are_limited", default=True)


@contextmanager
def without_legal_values() -> Iterator[None]:
    """Inside, constraints may have any value: what comes from elsewhere may be older than the limits of its fields."""
    token = _are_limited.set(False)
    try:
        yield
    finally:
        _are_limited.reset(token)


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names that flags of a project may use. The import adds those of its file (``dataclasses.replace``).

    ``legal_values`` contains only fields that have some. ``segments`` are names by id, of global segments and
    those of the project.
    """

    strategy_types: frozenset[str] = frozenset()
    legal_values: Mapping[str, frozenset[str]] = field(default_factory=dict)
    segments: Mapping[int, str] = field(default_factory=dict)
    tag_types: frozenset[str] = frozenset()


def load_known_names(project_id: str) -> KnownNames:
    """Loads the names in four queries."""
    return KnownNames(
        strategy_types=frozenset(StrategyType.objects.values_list("name", flat=True)),
        legal_values=legal_values(project_id),
        segments=dict(Segment.objects.usable_in(project_id).values_list("id", "name")),
        tag_types=frozenset(TagType.objects.values_list("name", flat=True)),
    )


def legal_values(project_id: str | None) -> dict[str, frozenset[str]]:
    """Legal values by context field, of the fields that the project (None: every project) can use."""
    if not _are_limited.get():
        return {}
    fields = ContextField.objects.usable_in(project_id or "")
    return {
        name: frozenset(item["value"] for item in values)
        for name, values in fields.values_list("name", "legal_values")
        if values
    }
