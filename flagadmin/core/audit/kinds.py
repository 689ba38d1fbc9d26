"""Sorts the types of audit events by their subject, for filters and forms."""

from collections.abc import Iterable

from flagadmin.core.audit.events import EventType

KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "flags": ("Flags", ("feature-", "strategy-order", "expectation-")),
    "requests": ("Change requests", ("change-",)),
    "plans": ("Release plans", ("release-plan-", "milestone-", "safeguard-", "impact-metrics-")),
    "imports": (
        "Imports and promotions",
        ("features-", "feature-imported", "feature-promoted", "import-", "promotion-", "installation-"),
    ),
    "projects": ("Projects and environments", ("project-", "default-strategy", "environment-")),
    "access": (
        "People and access",
        ("user-", "service-account-", "group-", "role-", "project-access-", "api-token-", "pat-"),
    ),
    "vocabulary": (
        "Segments, fields and types",
        ("segment-", "context-field-", "strategy-", "tag-type-", "saved-context-"),
    ),
    "integrations": ("Integrations", ("addon-", "signal-", "calendar-")),
}
"""The label of each kind, and how its types begin. A type may be of several."""


def list_types(kind: str) -> list[str]:
    _, prefixes = KINDS[kind]
    return [event.value for event in EventType if event.value.startswith(prefixes)]


def group_types(types: Iterable[str]) -> dict[str, list[str]]:
    """Groups them by the first kind that each is of; without kinds that none is of."""
    groups: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name in types:
        groups[next(kind for kind, (_, prefixes) in KINDS.items() if name.startswith(prefixes))].append(name)
    return {kind: names for kind, names in groups.items() if names}
