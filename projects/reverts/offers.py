"""Changes with the URL of the page that reverts them, for lists of changes."""

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlencode

from django.urls import reverse

from groups.access import Caller
from projects.history.changes import GroupedChange
from projects.reverts.plan import find_offered


def add_reverts(
    changes: Sequence[GroupedChange], *, back: str, flag: str = "", caller: Caller
) -> list[GroupedChange]:
    """``back`` is the page to return to; ``flag`` restricts reverts to one flag. One query."""
    events = {change.event.pk: [change.event, *(row.event for row in change.rows)] for change in changes}
    if flag:
        events = {key: [event for event in rows if event.feature == flag] for key, rows in events.items()}
    possible = find_offered(events, caller)
    query = urlencode({"flag": flag, "next": back} if flag else {"next": back})
    return [
        replace(change, revert_url=f"{reverse('change-revert', args=[change.event.pk])}?{query}")
        if change.event.pk in possible
        else change
        for change in changes
    ]
