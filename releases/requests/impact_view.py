"""Who changes once a request is applied, as its page shows it: in all, and flag by flag."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import NamedTuple

from groups.models import User
from playground.comparison.compare import Change
from playground.comparison.who_changes import FlagChanges
from playground.pages.changes import Slice, change_slices, format_share
from playground.pages.effects_view import EffectsView
from playground.pages.lines import Count, Explain, Line, count_looks, make_line
from releases.models import ChangeRequest
from releases.requests.causes import Cause, find_causes
from releases.requests.drift import Figure, compare_impacts, find_moved
from releases.requests.impact import Measured

EXAMPLES = 3


class FlagImpact(NamedTuple):
    """The users who change, beside the flag's changes."""

    counts: Sequence[Count]
    slices: Sequence[Slice]


class Moved(NamedTuple):
    """What was approved, and what is so now. ``withdrawn``: whose approvals this has withdrawn."""

    figures: Sequence[Figure]
    approved_at: datetime | None
    is_withdrawn: bool
    withdrawn: Sequence[str] = ()
    causes: Sequence[Cause] = ()


class RequestImpact:
    def __init__(self, measured: Measured, explain: Explain) -> None:
        self.document = measured.document()
        self.who, self._explain = measured.who, explain
        self.saved = EffectsView(measured.effects)
        self.counts = count_looks(self.who.people)
        self.percent = format_share(self.who.affected, self.who.users)
        self.made_changed = sum(flag.made for flag in self.who.flags)

    @property
    def both(self) -> int:
        """Users for whom one flag is turned on and another off."""
        people = self.who.people
        others = sum(number for change, number in people.items() if change not in _SWITCHED)
        return 0 if others else sum(people[change] for change in _SWITCHED) - self.who.affected

    @property
    def flags(self) -> Mapping[str, FlagImpact]:
        users = self.who.users
        return {
            flag.name: FlagImpact(count_looks(flag.counts), change_slices(flag, users))
            for flag in self.who.flags
        }

    @property
    def lines(self) -> list[Line]:
        """Some of those who change."""
        return list(islice(chain.from_iterable(map(self._lines, self.who.flags)), EXAMPLES))

    def _lines(self, flag: FlagChanges) -> Iterator[Line]:
        for example in self.who.examples(flag, limit_each=1):
            context = flag.source.table.contexts[example.position]
            yield make_line(example, context, explain=self._explain)

    def moved_since_approval(self, request: ChangeRequest) -> Moved | None:
        """If what is approved is no longer so; else as it was when approvals were last withdrawn."""
        approved, reasons = find_moved(request, self.document)
        if reasons and _is_approved(request):
            if approved is None:
                return None
            since = min((review.created_at for review in request.reviews.all()), default=request.created_at)
            causes = find_causes(request, since)
            return Moved(compare_impacts(approved, self.document), None, is_withdrawn=False, causes=causes)
        if not request.moved or not request.moved["before"]:
            return None
        moved = request.moved
        figures = compare_impacts(moved["before"], moved["after"])
        at = datetime.fromisoformat(moved["approvedAt"])
        causes = find_causes(request, at)
        names = list_full_names(moved["withdrawn"])
        return Moved(figures, at, is_withdrawn=True, withdrawn=names, causes=causes)


def list_full_names(usernames: Sequence[str]) -> list[str]:
    people = {user.username: user.display_name for user in User.objects.filter(username__in=usernames)}
    return [people.get(name, name) for name in usernames]


def _is_approved(request: ChangeRequest) -> bool:
    """By somebody, or by needing nobody."""
    approved = (ChangeRequest.State.APPROVED, ChangeRequest.State.SCHEDULED)
    return request.state in approved or any(review.approved for review in request.reviews.all())


_SWITCHED = (Change.OFF_TO_ON, Change.ON_TO_OFF)
