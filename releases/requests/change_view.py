"""The changes of a request as its page shows them."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from flagadmin.core.errors import NotFound
from projects.history.diff import format_variants
from projects.strategies.sentences import summarize_conditions, summarize_strategy
from projects.strategies.variant_rules import make_variants
from releases.models import Change, ChangeRequest
from releases.requests.conflicts import (
    describe_conflict,
    narrow_payload,
    read_now,
    say_change,
)
from releases.requests.impact_view import FlagImpact, RequestImpact


class ChangeView(NamedTuple):
    """A change as the page shows it: what it does, and a strategy, variants or a segment's conditions before and after.

    ``differences`` says what its conflict is about; None if what it changes is gone, so that it cannot be kept.
    """

    pk: int
    feature: str
    sentence: str
    conflict: str
    before: Any
    after: Any
    differences: Sequence[str] | None


class Group(NamedTuple):
    """The changes of a flag, or of segments, with the users who change."""

    feature: str
    changes: Sequence[ChangeView]
    impact: FlagImpact | None


def group_changes(views: Sequence[ChangeView], impact: RequestImpact | None) -> list[Group]:
    measured = impact.flags if impact else {}
    names = dict.fromkeys(view.feature for view in views)
    return [
        Group(name, [view for view in views if view.feature == name], measured.get(name)) for name in names
    ]


def view_change(
    request: ChangeRequest, change: Change, segments: dict[int, str], conflict: str
) -> ChangeView:
    now, differences = change.made_from, None
    if conflict:
        with suppress(NotFound):
            now = read_now(request, change)
            differences = describe_conflict(change, now)
    before, after = _sides(change, now, segments)
    return ChangeView(
        change.pk, change.feature, say_change(request, change), conflict, before, after, differences
    )


def _sides(change: Change, now: Any, segments: dict[int, str]) -> tuple[Any, Any]:
    """What it changes as it is and as the change would leave it; None where there is none."""
    if change.action == "patchVariant":
        return format_variants(now), format_variants(make_variants(change.payload["variants"], now))
    if change.action == "updateSegment":
        return _segment_sides(now, {**now, **change.payload})
    if "Strategy" not in change.action or change.action == "reorderStrategy":
        return None, None
    stored = now if isinstance(now, dict) else None
    before = summarize_strategy(stored, segments=segments) if stored else None
    if change.action == "deleteStrategy":
        return before, None
    payload = narrow_payload(change, change.made_from)
    wanted = (stored or {}) | {key: value for key, value in payload.items() if value is not None}
    return before, summarize_strategy(wanted, segments=segments)


def _segment_sides(now: Any, wanted: Any) -> tuple[str | None, str | None]:
    """Its name, its conditions or both, whichever differ. All conditions: the last may be the one that changes."""
    differing = [key for key in ("name", "constraints") if now[key] != wanted[key]]

    def describe(segment: Any) -> str | None:
        conditions = summarize_conditions(segment["constraints"], limit=len(segment["constraints"]))
        parts = {"name": segment["name"], "constraints": str(conditions)}
        return ": ".join(parts[key] for key in differing) or None

    return describe(now), describe(wanted)
