"""Shows which users change once a request is applied, as its page does: in all, and flag by flag."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from groups.models import User
from playground.comparison.compare import SWITCHES, Change
from playground.pages.changes import Slice, change_slices, format_share
from playground.pages.effects_view import EffectsView
from playground.pages.lines import Count, Explain, count_looks
from releases.models import ChangeRequest
from releases.requests.causes import Cause, find_causes
from releases.requests.drift import Figure, compare_impacts, find_moved
from releases.requests.impact import Impact
from releases.requests.summary import read_line


class FlagImpact(NamedTuple):
    """The users who change for a flag, counted by change and as the parts of a bar."""

    counts: Sequence[Count]
    slices: Sequence[Slice]


class Moved(NamedTuple):
    """The approved effect, and the present one. ``withdrawn``: whose approvals this has withdrawn."""

    figures: Sequence[Figure]
    approved_at: datetime | None
    is_withdrawn: bool
    withdrawn: Sequence[str] = ()
    causes: Sequence[Cause] = ()


class RequestImpact:
    def __init__(self, impact: Impact, explain: Explain) -> None:
        self.document = document = impact.document
        self.saved = EffectsView(impact.effects)
        self._people = {Change(kind): number for kind, number in document["counts"].items()}
        self.counts = count_looks(self._people)
        self.percent = format_share(document["changed"], document["users"])
        self.made_changed = impact.summary["made"]
        self.flags = {
            name: _make_flag_impact(counts, document["users"])
            for name, counts in impact.summary["flags"].items()
        }
        self.lines = [read_line(example, explain) for example in impact.summary["examples"]]

    @property
    def both(self) -> int:
        """Users for whom one flag is turned on and another off."""
        if self._people.keys() - set(SWITCHES):
            return 0
        return sum(self._people.values()) - int(self.document["changed"])

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


def _make_flag_impact(counts: Mapping[str, int], users: int) -> FlagImpact:
    by_change = {Change(kind): number for kind, number in counts.items()}
    return FlagImpact(count_looks(by_change), change_slices(by_change, users))


def list_full_names(usernames: Sequence[str]) -> list[str]:
    people = {user.username: user.display_name for user in User.objects.filter(username__in=usernames)}
    return [people.get(name, name) for name in usernames]


def _is_approved(request: ChangeRequest) -> bool:
    """Whether somebody has approved it, or nobody needs to."""
    approved = (ChangeRequest.State.APPROVED, ChangeRequest.State.SCHEDULED)
    return request.state in approved or any(review.approved for review in request.reviews.all())
