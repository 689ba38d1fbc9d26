"""The last changes of a flag, in all environments or in one, as its page shows them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from django.urls import reverse

from flagadmin.audit.events import EventType
from groups.access import Caller
from projects.history.back import TYPES
from projects.history.changes import GroupedChange, change_page
from projects.history.descriptions import Part
from projects.history.queries import readable_events
from projects.models import Flag

SHOWN = 6
MOST_SEGMENTS = 8  # environments offered; a project with more is asked by the activity page
_LINKING = (" of ", " to ", " from ")


class Version(NamedTuple):
    """The flag as a change left it: pages that evaluate it, and compare it with now."""

    evaluate: str
    compare: str


@dataclass(frozen=True, slots=True)
class FlagHistory:
    """``changes``: each with its sentence, in which the flag is "it", and its version. ``number`` counts all events."""

    changes: Sequence[tuple[GroupedChange, Sequence[Part], Version | None]]
    number: int
    all_url: str
    segments: Sequence[tuple[str, str, None, bool]]


def flag_history(flag: Flag, environments: Sequence[str], chosen: str, *, caller: Caller) -> FlagHistory:
    events = readable_events(caller).filter(project=flag.project_id, feature=flag.name)
    if chosen not in environments:
        chosen = ""
    if chosen:
        events = events.filter(environment=chosen)
    changes = change_page(events, caller=caller, size=SHOWN).changes
    number = events.count()
    query = {"project": flag.project_id, "flag": flag.name} | ({"environment": chosen} if chosen else {})
    return FlagHistory(
        changes=[
            (
                change,
                list(without_flag(change.sentence, flag.name)),
                _version(flag, change, chosen, environments),
            )
            for change in changes
        ],
        number=number,
        all_url=f"{reverse('activity')}?{urlencode(query)}",
        segments=list(_segments(environments, chosen)),
    )


def _version(flag: Flag, change: GroupedChange, chosen: str, environments: Sequence[str]) -> Version | None:
    """None for a change that evaluates to the same, such as that of a tag, and after which there is no flag."""
    event = change.event
    if event.type not in TYPES or event.type == EventType.FEATURE_ARCHIVED or flag.is_archived:
        return None
    usual = "production" if "production" in environments else next(iter(environments), "")
    environment = event.environment if event.environment in environments else chosen or usual
    # Whole seconds, and no event of the change after them.
    at = f"{event.created_at + timedelta(seconds=1):%Y-%m-%dT%H:%M:%SZ}"
    evaluate = urlencode({"project": flag.project_id, "environment": environment, "at": at})
    states = {"from": environment, "from-at": at, "to": environment, "project": flag.project_id}
    return Version(
        f"{reverse('playground-flag', args=[flag.name])}?{evaluate}",
        f"{reverse('who-changes')}?{urlencode({**states, 'flag': flag.name})}",
    )


def _segments(environments: Sequence[str], chosen: str) -> Iterator[tuple[str, str, None, bool]]:
    if 1 < len(environments) <= MOST_SEGMENTS:
        yield "All", "?#history", None, not chosen
        for name in environments:
            yield name, f"?{urlencode({'history': name})}#history", None, name == chosen


def without_flag(sentence: Sequence[Part], name: str) -> Iterator[Part]:
    """The sentence for a page that is about this flag: "changed strategy 1 of cart" → "changed strategy 1"."""
    parts = list(sentence)
    for index, part in enumerate(parts):
        following = parts[index + 1] if index + 1 < len(parts) else None
        linking = next((end for end in _LINKING if part.text.endswith(end)), "")
        if linking and following is not None and following.url and following.text == name:
            yield Part(part.text.removesuffix(linking), part.url, part.mark)
        elif part.url and part.text == name:
            if not (index and parts[index - 1].text.endswith(_LINKING)):
                yield Part("it")
        else:
            yield part
