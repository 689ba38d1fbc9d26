"""Usage of the demo's flags: now, by hour and by day. The numbers depend on names and times only.

Two analyses of the demo, one-click pay sold more and a table about the redesigned checkout lacks some
users; and an incident: users whose payments failed since a change of the last day.
"""

import gzip
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, time, timedelta
from hashlib import sha256
from zlib import crc32

from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from flagadmin.demo.flags import FLAGS
from flagadmin.demo.people import USAGE, DemoUsage
from groups.access import Caller
from playground.models import Analysis
from playground.outcomes import experiment
from playground.outcomes.analyses.actions import create_analysis
from playground.outcomes.analyses.design import Design, read_measure
from playground.outcomes.answer import SmallAnswer
from playground.outcomes.runs import create_incident
from projects.applications.cleanup import refresh_totals
from projects.applications.store_report import store_report
from projects.applications.usage_report import Count, FlagUse, Instance, InstanceKey, UsageReport
from projects.models import Flag, FlagLastSeen, UsageDay, UsageHour

HOURS, DAYS = 26, 30
# Calls by hour of the day (UTC), in percent of the busiest hour.
_BY_HOUR = (22, 16, 12, 10, 9, 12, 21, 38, 58, 74, 83, 88, 92, 89, 86, 90, 95, 100, 98, 87, 72, 56, 42, 30)
_CALLS = 400  # per instance in the busiest hour
_FLAGS = {flag.name: flag for flags in FLAGS.values() for flag in flags}
_LONG_AGO = {("small-cart-hint", "production"): timedelta(days=41)}
# From how many days ago backwards a flag was on for another share of production, see story.py; oldest first.
_RAMPS = {
    "checkout-redesign": ((28, 5), (21, 7)),
    "one-click-pay": ((9, 50), (1, 75)),
    "dark-theme": ((1, 4),),
    "gift-cards": ((1, 100), (0, 10)),
}


def report_usage(now: datetime) -> None:
    """Brings the instances online, and adds numbers for the hours and days without any."""
    report = _make_online_report(now)
    known = set(UsageHour.objects.order_by().values_list("hour", flat=True).distinct())
    for use in USAGE:
        for back in range(1, HOURS + 1):
            hour = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=back)
            if hour not in known and use.minutes_ago < back * 60:
                _add_hour(report, use, hour, now)
    store_report(report, now=now)
    ids = dict(Flag.objects.filter(name__in=_FLAGS).values_list("name", "id"))
    if not UsageDay.objects.exists():
        UsageDay.objects.bulk_create(list(_list_days(now, ids)))
    for (flag, environment), ago in _LONG_AGO.items():
        key = {"flag_id": ids[flag], "environment": environment}
        FlagLastSeen.objects.get_or_create(**key, defaults={"seen_at": now - ago})
    refresh_totals(now=now)


def _make_online_report(now: datetime) -> UsageReport:
    report = UsageReport()
    for use in USAGE:
        version = use.sdk.rpartition(":")[2]
        for number in range(1, use.instances + 1):
            key = InstanceKey(use.application, f"{use.application}-{version}-{number}", use.environment)
            report.add_instance(key, Instance(sdk_version=use.sdk, sdk_type="backend"))
        for flag in use.flags:
            count = _count(flag, use.environment, 17)
            at = now - timedelta(minutes=use.minutes_ago)
            report.add_count(FlagUse(use.application, flag, use.environment), at, count, now=now)
    return report


def _add_hour(report: UsageReport, use: DemoUsage, hour: datetime, now: datetime) -> None:
    for flag in use.flags:
        calls = _count_calls(use, flag, hour) * _BY_HOUR[hour.hour] // 100
        report.add_count(
            FlagUse(use.application, flag, use.environment),
            hour,
            _count(flag, use.environment, calls, days=(now - hour).days),
            now=now,
        )


def _list_days(now: datetime, ids: dict[str, int]) -> Iterator[UsageDay]:
    """The days before the period that the hours cover."""
    sums: dict[tuple[str, str, int], int] = {}
    today = datetime.combine(now.astimezone(UTC).date(), time(), UTC)
    for use in USAGE:
        for flag in use.flags:
            for back in range(2, DAYS + 1):
                day = today - timedelta(days=back)
                weekend = 0.55 if day.weekday() > 4 else 1.0
                grown = 1 - back / 90
                calls = round(_count_calls(use, flag, day) * sum(_BY_HOUR) / 100 * weekend * grown)
                key = (flag, use.environment, back)
                sums[key] = sums.get(key, 0) + calls
    for (flag, environment, back), calls in sums.items():
        count = _count(flag, environment, calls, days=back)
        yield UsageDay(
            flag_id=ids[flag],
            environment=environment,
            day=today.date() - timedelta(days=back),
            yes=count.yes,
            no=count.no,
            variants=count.variants,
        )


def _count_calls(use: DemoUsage, flag: str, at: datetime) -> int:
    noise = 85 + crc32(f"{flag} {use.application} {at:%Y%m%d%H}".encode()) % 31
    return max(1, use.instances * _CALLS * noise // 100)


def _count(flag: str, environment: str, calls: int, days: int = 0) -> Count:
    """Counts how many of the calls were on so many days ago, and their variants."""
    state = getattr(_FLAGS[flag], environment)
    if not state.enabled:
        return Count(no=calls)
    strategies = [each for each in state.strategies if not each.get("disabled")]
    share = max((_read_share(each) for each in strategies), default=100)
    if environment == "production":
        share = next((then for since, then in _RAMPS.get(flag, ()) if days >= since), share)
    yes = round(calls * share / 100)
    variants: list[Document] = state.variants or next(
        (each["variants"] for each in strategies if each.get("variants")), []
    )
    return Count(yes=yes, no=calls - yes, variants=_split(variants, yes))


def _read_share(strategy: Document) -> int:
    parameters = strategy["parameters"]
    share = int(parameters.get("rollout", parameters.get("percentage", 100)))
    return share if not strategy["constraints"] and not strategy["segments"] else max(1, share // 6)


def _split(variants: list[Document], calls: int) -> dict[str, int]:
    """Splits calls by weight, slightly off, as measured numbers are."""
    total = sum(variant["weight"] for variant in variants)
    return {
        variant["name"]: round(calls * variant["weight"] / total * (98 + 4 * (index % 2)) / 100)
        for index, variant in enumerate(variants)
    }


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
