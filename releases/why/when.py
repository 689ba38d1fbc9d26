"""When the answer of a flag was and will be another for one user, beside the rollout: from versions, running release
plans, scheduled requests and conditions on the time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

from django.urls import reverse

from groups.access import Caller
from playground.engine.literals import read_instant
from playground.lens import Lens, Told, evaluate_for, tell, tell_at
from projects.definitions import Definitions
from projects.flag_versions import FlagVersions
from projects.flags.lists.cells import Place
from projects.history.changes import Row, make_event_rows
from projects.history.queries import find_events, readable_events
from projects.models import Flag
from releases.forecast import forecast
from releases.models import ChangeRequest, Schedule
from releases.plans.queries import read_plans
from releases.plans.view import PlanView
from releases.timeline.draw import Axis, Step, draw_ahead, draw_past, read_spans
from releases.timeline.view import LEAST, SPANS, Tick, list_ahead, make_ticks, read_steps_ahead

HEIGHT = 54  # of the rollout, in pixels
MAX_MOMENTS = 120
"""Past moments that are evaluated; the latest ones count."""
MAX_AHEAD = 5
"""Scheduled requests and times of conditions that are evaluated, each."""
MAX_LISTED = 10
AFTER = timedelta(seconds=1)
"""A condition on the time is evaluated so much later: it may exclude its own moment."""
MIN_WIDTH, MAX_TEXT = 8, 12
"""A part of the picture this wide, in percent, is labelled with a text this short."""
BY_TIME = "A condition on the time"


class Turn(NamedTuple):
    """The answer from a moment on. ``told`` is None while there was no flag, or one in a project of others.

    The cause is the event in ``row``, or ``words`` with a page. Neither: a change outside flagadmin.
    """

    at: datetime
    told: Told | None
    before: Told | None = None
    row: Row | None = None
    words: str = ""
    url: str = ""


class Part(NamedTuple):
    """A part of the picture: positions in percent."""

    x: str
    width: str
    css: str
    is_ahead: bool
    text: str


class When(NamedTuple):
    """``turns``: the last ones, newest first, without the first known answer. ``since``: from when it has the present
    answer, None if longer than is known. ``ahead``: what will be another, soonest first. ``steps`` and
    ``steps_ahead``: the share of all users, as on the flag's page.
    """

    known_since: datetime
    now: Told | None
    since: datetime | None
    turns: Sequence[Turn]
    is_cut: bool
    ahead: Sequence[Turn]
    parts: Sequence[Part]
    now_x: str
    words: str
    steps: Sequence[Step]
    steps_ahead: Sequence[Step]
    ticks: Sequence[Tick]


def read_when(
    lens: Lens, flag: Flag, environment: str, stored: Definitions, *, span: str, now: datetime, caller: Caller
) -> When:
    """About thirty queries, and those of each scheduled request. ``stored``: the flag and its parents now.

    ``span``: a key of SPANS.
    """
    age = 1.05 * max(now - flag.created_at, LEAST)
    begin = now - min(SPANS[span][1] or age, age)
    versions = FlagVersions([flag.pk], begin)
    times = sorted(_read_times(versions.list_times(flag.pk, environment)))
    past = list(_read_past(lens, flag, environment, versions, times, now, caller))
    turns = _explain(past[1:], [flag.name, *versions.list_parents(flag.pk)], set(times), caller)
    place = (flag.project_id, environment, flag.name)
    plan = read_plans(flag, environment).first()
    view = PlanView(plan, caller) if plan else None
    coming = _list_coming(flag, environment, view, times, now)
    ahead = list(_read_ahead(lens, place, stored, coming, past[-1].told))
    end = max([turn.at for turn in ahead], default=now)
    future = max((end - now) * 1.2, (now - begin) / 15)
    axis = Axis(begin, now + min(future, (now - begin) * 0.6))
    spans = read_spans(flag, [environment], begin, now)[environment]
    last = spans[-1].people
    return When(
        past[0].at,
        past[-1].told,
        turns[-1].at if turns else None,
        turns[::-1][:MAX_LISTED],
        len(turns) > MAX_LISTED,
        ahead,
        list(_draw(past, ahead, axis, now)),
        axis.x(now),
        _say(past, ahead),
        list(draw_past(environment, spans, {}, axis, HEIGHT, is_tall=True, back="")),
        list(draw_ahead(last, list(list_ahead(flag, view)), axis, now, HEIGHT)) if last else [],
        list(make_ticks(axis, now, {})),
    )


def _read_times(texts: set[str]) -> Iterator[datetime]:
    for text in texts:
        if (instant := read_instant(text)) is not None:
            try:
                yield datetime.fromtimestamp(instant[0], UTC) + AFTER
            except (ValueError, OverflowError):
                continue


def _read_past(
    lens: Lens,
    flag: Flag,
    environment: str,
    versions: FlagVersions,
    times: Sequence[datetime],
    now: datetime,
    caller: Caller,
) -> Iterator[Turn]:
    known = versions.known_since
    changed = {*versions.list_moments(flag.pk, environment), *times}
    moments = [known, *sorted(moment for moment in changed if known < moment <= now)][-MAX_MOMENTS:]
    last: Turn | None = None
    for at in moments:
        told = None
        if versions.existed(flag.pk, at) and may_read(
            flag, versions.read([flag.pk], environment, at), caller
        ):
            told = tell_at(lens, flag, environment, at, versions)
        if last is None or told != last.told:
            last = Turn(at, told, last.told if last else None)
            yield last


def may_read(flag: Flag, read: Definitions, caller: Caller) -> bool:
    """Whether the flag was in a project that the caller may read; an archived one had no answer of its own."""
    then = read.by_name().get(flag.name)
    return then is None or then["project"] == flag.project_id or caller.can_read(then["project"])


def _explain(turns: Sequence[Turn], names: list[str], times: set[datetime], caller: Caller) -> list[Turn]:
    """The turns with their events. Two or three queries."""
    if not turns:
        return []
    found = find_events([turn.at for turn in turns], names)
    events = readable_events(caller).filter(pk__in=found.values())
    rows = {row.event.pk: row for row in make_event_rows(events, caller=caller)}
    return [
        turn._replace(row=rows.get(found.get(turn.at, 0)), words=BY_TIME if turn.at in times else "")
        for turn in turns
    ]


class _Next(NamedTuple):
    """``change`` makes the state of a moment from the one before."""

    at: datetime
    change: Callable[[Definitions], Definitions]
    words: str
    url: str = ""


def _read_ahead(
    lens: Lens, place: Place, stored: Definitions, coming: Iterable[_Next], present: Told | None
) -> Iterator[Turn]:
    """The moments from which the answer will be another, in order."""
    read, last = stored, present
    for each in sorted(coming, key=lambda each: each.at):
        read = each.change(read)
        [shares] = evaluate_for(lens, read, place[1], [place], each.at)
        told = tell(shares, lens, place)
        if told != last:
            yield Turn(each.at, told, last, words=each.words, url=each.url)
            last = told


def _list_coming(
    flag: Flag, environment: str, view: PlanView | None, times: Sequence[datetime], now: datetime
) -> Iterator[_Next]:
    for at in [each for each in times if each > now][:MAX_AHEAD]:
        yield _Next(at, lambda read: read, BY_TIME)
    for at, step, then in read_steps_ahead(flag, view):
        assert view is not None
        words = f"Step {step} of the release plan, at the earliest"
        yield _Next(max(at, now), partial(_choose, then), words, view.url)
    schedules = Schedule.objects.filter(
        status=Schedule.Status.PENDING,
        at__gt=now,
        request__state=ChangeRequest.State.SCHEDULED,
        request__project=flag.project_id,
        request__environment=environment,
    )
    for request, at in schedules.order_by("at", "pk").values_list("request", "at")[:MAX_AHEAD]:
        changed = forecast([flag.project_id], environment, at).changed
        url = reverse("change-request", args=[flag.project_id, request])
        yield _Next(at, changed.applied, f"Request {request}", url)


def _choose(then: Definitions, before: Definitions) -> Definitions:
    """A step of a plan replaces what was before."""
    return then


def _draw(past: Sequence[Turn], ahead: Sequence[Turn], axis: Axis, now: datetime) -> Iterator[Part]:
    following = [past[-1]._replace(at=now), *ahead]
    for turns, last in ((past, now), (following, axis.end)):
        for turn, end in zip(turns, [*(turn.at for turn in turns[1:]), last], strict=True):
            if turn.told is not None:
                is_wide = axis.place(end) - axis.place(turn.at) > MIN_WIDTH
                text = turn.told.text if is_wide and len(turn.told.text) < MAX_TEXT else ""
                yield Part(axis.x(turn.at), axis.width(turn.at, end), turn.told.css, turns is following, text)


def _say(past: Sequence[Turn], ahead: Sequence[Turn]) -> str:
    """``Off from 31 October, On from 7 November; planned Off from 2 December``"""

    def say(turns: Sequence[Turn]) -> str:
        return ", ".join(
            f"{turn.told.text if turn.told else 'no flag'} from {turn.at.day} {turn.at:%B}"
            for turn in turns[-MAX_LISTED:]
        )

    return f"{say(past)}; planned {say(ahead)}" if ahead else say(past)
