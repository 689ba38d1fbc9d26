"""The changes of a request for its page."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from flagadmin.core.errors import NotFound
from projects.history.diff import format_variants
from projects.strategies.sentences import summarize_conditions, summarize_strategy
from projects.strategies.variant_rules import make_variants
from releases.changes import KINDS
from releases.models import Change, ChangeRequest
from releases.plans.queries import ARCHIVE, CHANGE, OFF, ON, TouchedPlan, find_touched_plans
from releases.requests.access import OPEN
from releases.requests.conflicts import (
    describe_conflict,
    narrow_payload,
    read_now,
    say_change,
)
from releases.requests.impact_view import FlagImpact, RequestImpact


class ChangeView(NamedTuple):
    """A change for the page: its action, and a strategy, variants or a segment's conditions before and after.

    ``differences`` describes its conflict; None if the changed object is deleted, so that the change cannot be kept.
    """

    pk: int
    feature: str
    sentence: str
    conflict: str
    before: Any
    after: Any
    differences: Sequence[str] | None


class Group(NamedTuple):
    """The changes of a flag, or of segments, with the affected users.

    ``touched``: the release plans of the flag that applying them does not take into account.
    """

    feature: str
    changes: Sequence[ChangeView]
    impact: FlagImpact | None
    touched: Sequence[TouchedPlan] = ()


def group_changes(
    request: ChangeRequest, views: Sequence[ChangeView], impact: RequestImpact | None
) -> list[Group]:
    """By flag. The plans that are touched are those of requests that may still be applied."""
    measured = impact.flags if impact else {}
    made: dict[str, list[Change]] = {view.feature: [] for view in views}
    for change in request.changes.all():
        made[change.feature].append(change)
    may_be_applied = request.state in (*OPEN, ChangeRequest.State.SCHEDULED)
    return [
        Group(
            name,
            [view for view in views if view.feature == name],
            measured.get(name),
            list(_find_touched(request, name, made[name])) if name and may_be_applied else [],
        )
        for name in made
    ]


def _find_touched(request: ChangeRequest, flag: str, changes: Sequence[Change]) -> Iterator[TouchedPlan]:
    if any(KINDS[change.action].is_later for change in changes):  # they are about the plan
        return iter(())
    last = changes[-1]
    what = {"archiveFeature": ARCHIVE, "updateEnabled": ON}.get(last.action, CHANGE)
    if what == ON and not last.payload["enabled"]:
        what = OFF
    return find_touched_plans([flag], request.environment_id, what)


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
    """The changed part now, and after the change; None if there is none."""
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
    """The differing parts: name, conditions or both. Lists all conditions, because the last one may differ."""
    differing = [key for key in ("name", "constraints") if now[key] != wanted[key]]

    def describe(segment: Any) -> str | None:
        conditions = summarize_conditions(segment["constraints"], limit=len(segment["constraints"]))
        parts = {"name": segment["name"], "constraints": str(conditions)}
        return ": ".join(parts[key] for key in differing) or None

    return describe(now), describe(wanted)
