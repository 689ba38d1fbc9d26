"""The changes that an incident found, as the page of its run shows them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.urls import reverse

from flagadmin.core.lists.charts import format_percent
from groups.access import Caller
from playground.models import UserRun
from playground.outcomes.statistics import format_p
from projects.history.changes import GroupedChange, change_page
from projects.history.queries import readable_events
from projects.reverts.offers import add_reverts

SHOWN = 50
OTHERS = {
    "given": "others",
    "own": "of your own users",
    "generated": "generated users, which stand in for others",
}


class Share(NamedTuple):
    percent: float
    text: str
    counts: str


class FoundRow(NamedTuple):
    """``flag`` is that of something in common. ``change`` is None if it left no event."""

    flag: str
    sentence: str
    affected: Share
    others: Share
    p: str
    is_likely: bool
    at: datetime | None = None
    change: GroupedChange | None = None


def describe_found(run: UserRun, caller: Caller) -> dict[str, Any]:
    """The context of the page: its first changes, and what the affected have in common. About ten queries."""
    found = run.counts
    return {
        "groups": f"{found['affected']:,} affected users, {found['others']:,} {OTHERS[found['othersAre']]}",
        "since": datetime.fromisoformat(found["from"]),
        "until": datetime.fromisoformat(found["to"]),
        "rows": _list_changes(run, found["changes"][:SHOWN], caller),
        "equal": _count_equal(found["changes"]),
        "more": len(found["changes"]) - SHOWN,
        "common": [_make_row(each, each["flag"]) for each in found["common"]],
        "has_others": found["othersAre"] != "generated",
    }


def _count_equal(changes: Sequence[Mapping[str, Any]]) -> int:
    """The changes that explain as much as the first one: those that the same users noticed."""
    first = changes[0] if changes else None
    return sum(each["noticed"] == first["noticed"] and each["isLikely"] for each in changes) if first else 0


def _list_changes(run: UserRun, changes: Sequence[Mapping[str, Any]], caller: Caller) -> list[FoundRow]:
    events = _find_changes([int(each["change"]) for each in changes if each["change"]], run, caller)
    return [
        _make_row(
            each,
            at=datetime.fromisoformat(each["at"]),
            change=events.get(int(each["change"] or 0)),
        )
        for each in changes
    ]


def _find_changes(ids: Sequence[int], run: UserRun, caller: Caller) -> Mapping[int, GroupedChange]:
    if not ids:
        return {}
    page = change_page(readable_events(caller).filter(pk__in=ids), caller=caller, size=len(ids))
    changes = add_reverts(page.changes, back=reverse("user-run", args=[run.pk]), caller=caller)
    return {
        pk: change for change in changes for pk in (change.event.pk, *(row.event.pk for row in change.rows))
    }


def _make_row(found: Mapping[str, Any], flag: str = "", **others: Any) -> FoundRow:
    affected, rest = (
        _make_share(found["noticed"][group], found["known"][group]) for group in ("affected", "others")
    )
    p = format_p(found["pAdjusted"])
    return FoundRow(flag, found["sentence"], affected, rest, p, found["isLikely"], **others)


def _make_share(count: int, total: int) -> Share:
    percent = 100 * count / max(1, total)
    text = format_percent(percent) if total else "–"
    return Share(round(percent, 2), text, f"{count:,} of {total:,}")
