"""Limits on the number and length of a project's contents, from the settings."""

from dataclasses import dataclass

from django.conf import settings


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum numbers of flags, strategies, constraints and so on.

    The defaults are those of the reference.
    """

    strategies: int = 30
    constraints: int = 30
    constraint_values: int = 250  # of a strategy, for each constraint
    segment_values: int = 1000  # of a segment, for all its constraints together, except a list
    segment_list: int = 10_000  # of the list of a segment
    value_length: int = 100
    segments: int = 5
    links: int = 10
    flags: int = 200_000

    @classmethod
    def from_settings(cls) -> "Limits":
        return cls(
            strategies=settings.FLAG_ENVIRONMENT_STRATEGIES_LIMIT,
            constraints=settings.STRATEGY_CONSTRAINTS_LIMIT,
            constraint_values=settings.CONSTRAINT_VALUES_LIMIT,
            segment_values=settings.SEGMENT_VALUES_LIMIT,
            segment_list=max(settings.SEGMENT_LIST_LIMIT, settings.SEGMENT_VALUES_LIMIT),
            value_length=settings.CONSTRAINT_VALUE_LENGTH_LIMIT,
            segments=settings.STRATEGY_SEGMENTS_LIMIT,
            links=settings.FLAG_LINKS_LIMIT,
            flags=settings.FLAGS_LIMIT,
        )
