"""What the lens got before and after the changes of a time."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from playground.lens import Lens, Told, evaluate_for, tell
from projects.flag_versions import FlagVersions
from projects.history.noticed import NoticedChange
from projects.models import Flag

MAX_EVENTS = 100
"""Events whose flags are evaluated, the newest changes first. Nothing is said about others."""
MOMENT = timedelta(microseconds=1)


class Noticed(NamedTuple):
    """What the lens got of the first ``flag`` of the change that it noticed; equal answers if it noticed none."""

    flag: str
    before: Told
    after: Told

    @property
    def is_other(self) -> bool:
        return self.before.text != self.after.text


def notice_changes(lens: Lens, changes: Sequence[NoticedChange], environment: str) -> dict[int, Noticed]:
    """By the newest event of each change. Nothing about flags that are gone, or before versions.

    Seven queries, and one for each state with other segments than the one before.
    """
    events = [
        (change.event.pk, event)
        for change in changes
        for event in {row.event.pk: row.event for row in change.change.rows}.values()
        if event.feature
    ][:MAX_EVENTS]
    if not events:
        return {}
    flags = {flag.name: flag for flag in Flag.objects.filter(name__in={event.feature for _, event in events})}
    since = min(event.created_at for _, event in events) - MOMENT
    versions = FlagVersions([flag.pk for flag in flags.values()], since)
    noticed: dict[int, Noticed] = {}
    for key, event in events:
        flag = flags.get(event.feature or "")
        if (
            flag is None
            or event.created_at <= versions.known_since
            or (key in noticed and noticed[key].is_other)
        ):
            continue
        sides = [
            tell_at(lens, flag, environment, at, versions)
            for at in (event.created_at - MOMENT, event.created_at)
        ]
        one = Noticed(flag.name, *sides)
        if key not in noticed or one.is_other:
            noticed[key] = one
    return noticed


def tell_at(lens: Lens, flag: Flag, environment: str, at: datetime, versions: FlagVersions) -> Told:
    place = (flag.project_id, environment, flag.name)
    [shares] = evaluate_for(lens, versions.read([flag.pk], environment, at), environment, [place], at)
    return tell(shares, lens, place)
