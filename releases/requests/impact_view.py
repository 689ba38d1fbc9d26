"""The affected users of a change request for its page: in total, and flag by flag."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from groups.models import User
from playground.comparison.compare import SWITCHES, Change
from playground.pages.changes import Slice, change_slices, format_share
from playground.pages.lines import Count, EffectsView, Explain, count_looks
from releases.models import ChangeRequest
from releases.requests.impact import Impact, read_line
from releases.requests.review import (
    Cause,
    Figure,
    compare_impacts,
    find_approved_impact,
    find_causes,
    find_moved,
    foresee_fingerprint,
)


class FlagImpact(NamedTuple):
    """The affected users of a flag, counted by change and as the parts of a bar."""

    counts: Sequence[Count]
    slices: Sequence[Slice]


class Moved(NamedTuple):
    """The approved effect, and the present one. ``withdrawn``: the givers of withdrawn approvals.

    ``reasons`` are sentences; ``figures`` compare the affected users then and now.
    """

    reasons: Sequence[str]
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
        """Users for whom one flag is turned on and another one off."""
        if self._people.keys() - set(SWITCHES):
            return 0
        return sum(self._people.values()) - int(self.document["changed"])

    def moved_since_approval(self, request: ChangeRequest) -> Moved | None:
        """The change of the effect since approval, or the one that last caused approvals to be withdrawn."""
        if _is_approved(request) and (reasons := find_moved(request, foresee_fingerprint(request))):
            approved = find_approved_impact(request)
            figures = compare_impacts(approved, self.document) if approved else ()
            since = min((review.created_at for review in request.reviews.all()), default=request.created_at)
            return Moved(reasons, figures, None, is_withdrawn=False, causes=find_causes(request, since))
        if not (moved := request.moved):
            return None
        before, after = moved["before"], moved["after"]
        figures = compare_impacts(before, after) if before and after else ()
        at, names = datetime.fromisoformat(moved["approvedAt"]), list_full_names(moved["withdrawn"])
        causes = find_causes(request, at)
        return Moved(moved["reasons"], figures, at, is_withdrawn=True, withdrawn=names, causes=causes)


def _make_flag_impact(counts: Mapping[str, int], users: int) -> FlagImpact:
    by_change = {Change(kind): number for kind, number in counts.items()}
    return FlagImpact(count_looks(by_change), change_slices(by_change, users))


def list_full_names(usernames: Sequence[str]) -> list[str]:
    people = {user.username: user.display_name for user in User.objects.filter(username__in=usernames)}
    return [people.get(name, name) for name in usernames]


def _is_approved(request: ChangeRequest) -> bool:
    """Whether it is approved, or needs no approval."""
    approved = (ChangeRequest.State.APPROVED, ChangeRequest.State.SCHEDULED)
    return request.state in approved or any(review.approved for review in request.reviews.all())
