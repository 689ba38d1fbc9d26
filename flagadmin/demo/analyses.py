"""Two analyses of the demo, one-click pay sold more and a table about the redesigned checkout lacks some users; and an
incident: users whose payments failed since a change of the last day.
"""

import gzip
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from hashlib import sha256

from flagadmin.core.http.responses import iso
from groups.access import Caller
from playground.models import Analysis
from playground.outcomes import experiment
from playground.outcomes.analyses.actions import create_analysis
from playground.outcomes.analyses.design import Design, read_measure
from playground.outcomes.answer import SmallAnswer
from playground.outcomes.runs import create_incident

PROJECT, ENVIRONMENT = "checkout", "production"
USERS = 8_000


def add_analyses(now: datetime, caller: Caller) -> None:
    """Makes both, if the packages that they need are installed. They wait for the process beside the workers."""
    if not experiment.is_installed() or Analysis.objects.exists():
        return
    _add(
        "one-click-pay",
        "Does one click sell more?",
        now - timedelta(days=30),
        now - timedelta(days=10),
        _sell,
        caller,
    )
    start = now - timedelta(days=20)
    _add("checkout-redesign", "Do more people finish?", start, now - timedelta(days=2), _lose_some, caller)


def _add(
    flag: str,
    name: str,
    since: datetime,
    until: datetime,
    tell: Callable[[str, bool], str],
    caller: Caller,
) -> None:
    rows = list(_list_visits(since, until))
    answer = SmallAnswer(caller, ENVIRONMENT, [flag], lag=0, spreadsheet=False)
    body = "userId,time\n" + "".join(f"{user},{iso(time)}\n" for user, time in rows)
    results = [line.split(",")[2] for line in answer.answer(body.encode()).splitlines()[1:]]
    lines = (
        f"{user},{iso(time)},{cells}\n"
        for (user, time), result in zip(rows, results, strict=True)
        if (cells := tell(user, result == "on") if time >= since else _tell_before(user))
    )
    table = "userId,time,bought,revenue\n" + "".join(lines)
    measures = [read_measure("proportion", "bought"), read_measure("mean", "revenue")]
    create_analysis(
        gzip.compress(table.encode(), mtime=0),
        Design(since=since, until=until, measures=measures),
        project=PROJECT,
        flag=flag,
        environment=ENVIRONMENT,
        name=name,
        file_name="visits.csv.gz",
        caller=caller,
        starts=False,
    )


def add_incident(now: datetime, caller: Caller) -> None:
    """The answer stays with the caller's runs: 60 users noticed the change, and 6 of the others had a problem too."""
    day = now - timedelta(days=1)
    answer = SmallAnswer(caller, ENVIRONMENT, ["one-click-pay"], lag=0, spreadsheet=False)
    body = "userId,time\n" + "".join(f"{number},{iso(now)}\n" for number in range(1, 601))
    rows = [line.split(",") for line in answer.answer(body.encode()).splitlines()[1:]]
    noticed = [user for user, _, _, _, since, *_ in rows if since > iso(day)]
    others = [user for user, _, _, _, since, *_ in rows if since <= iso(day)]
    affected, unaffected = ("userId\n" + "\n".join(ids) for ids in (noticed[:60] + others[:6], others[6:]))
    create_incident(
        affected.encode(),
        unaffected.encode(),
        caller=caller,
        environment=ENVIRONMENT,
        since=day,
        until=now,
        file_name="failed-payments.csv",
    )


def _list_visits(since: datetime, until: datetime) -> Iterator[tuple[str, datetime]]:
    """Everybody came once in the period, and a quarter of them in the five days before."""
    for number in range(USERS):
        user = str(10_000 + number)
        yield user, since + (until - since) * _draw("time", user)
        if number % 4 == 0:
            yield user, since - timedelta(days=5) * _draw("earlier", user)


def _draw(what: str, user: str) -> float:
    """The same number from 0 to 1 each time."""
    return int.from_bytes(sha256(f"{what} {user}".encode()).digest()[:4]) / 2**32


def _sell(user: str, has_flag: bool) -> str:
    """Of those who have it, 30 % buy, of the others 24 %."""
    buys = _draw("buys", user) < (0.30 if has_flag else 0.24)
    return f"{buys:d},{20 + 60 * _draw('revenue', user):.2f}" if buys else "0,0"


def _tell_before(user: str) -> str:
    return f"{_draw('bought', user) < 0.2:d},0"


def _lose_some(user: str, has_flag: bool) -> str:
    """A fifth of those who have it is missing, as if their browsers had failed. "": no row."""
    if has_flag and _draw("failed", user) < 0.2:
        return ""
    return _sell(user, has_flag=False)
