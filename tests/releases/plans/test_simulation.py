"""Plans over 30 days with two servers and restarts: each step once, in order, never early, whatever metrics do.

With FLAGADMIN_EXAMPLES=1 and more there are 1,000 plans.
"""

import random
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import pairwise, product
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from projects.applications.impact_metrics import Sample, make_series, write_samples
from releases.models import ReleasePlan, Safeguard
from releases.plans import due, steps
from tests.support.examples import FACTOR
from tests.support.plans import Move, cart, copy_plan, started

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.exhaustive]
NUMBER = 1000 if FACTOR >= 1 else 24
TICK = timedelta(hours=12)
BREAKS_AFTER = timedelta(days=8)
METRICS = ("", "good", "breaking", "silent")
SHARES = (10, 30, 60, 100)
WINDOW = {"zone": "Europe/Oslo", "days": [1, 2, 3, 4], "from": "09:00", "to": "16:00"}
PLAN_DAYS = (1, 2, 5)


class Killed(BaseException):
    """A server that is killed: nothing catches it, and its transaction is rolled back."""


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadPoolExecutor]:
    """Two, each with its own connection. Who changes is not measured."""
    monkeypatch.setattr(steps, "measure_start", lambda *args, **kwargs: SimpleNamespace(document=dict))
    for module in (steps, due):
        monkeypatch.setattr(module, "LOOK_EVERY", TICK)
    with ThreadPoolExecutor(2) as threads:
        yield threads


def make_plans() -> dict[str, tuple[str, int]]:
    """The metric and the interval in days of each flag's plan: of each of both equally many, with a window and without."""
    cart(10)
    kinds = list(product(METRICS, PLAN_DAYS, (None, WINDOW)))
    made = {}
    for number, (metric, days, window) in enumerate(kinds):
        plan = started(*SHARES, intervalMinutes=days * 1440, window=window)
        names = [f"flag-{index}" for index in range(number, NUMBER, len(kinds))]
        plans = copy_plan(plan, names)
        Safeguard.objects.bulk_create(
            Safeguard(plan=copy, metric=metric, aggregation="avg", time_range="hour", threshold=5)
            for copy in plans * bool(metric)
        )
        plan.delete()
        made |= dict.fromkeys(names, (metric, days))
    return made


def report(since_start: timedelta) -> None:
    values = {"good": 1.0, "breaking": 9.0 if since_start > BREAKS_AFTER else 1.0, "silent": 1.0}
    if since_start > BREAKS_AFTER:
        del values["silent"]
    samples = {
        make_series(name, {}, environment="production"): Sample("gauge", "", value)
        for name, value in values.items()
    }
    with connection.cursor() as cursor:
        write_samples(cursor, samples, now=timezone.now())


def serve(kill: bool) -> None:
    """One server looks; one that is killed has done everything but commit its first step."""
    original = due.enter_milestone

    def enter_and_die(*args: Any, **kwargs: Any) -> None:
        original(*args, **kwargs)
        raise Killed

    try:
        if kill:
            due.enter_milestone = enter_and_die
        due.look_at_due()
    except Killed:
        pass
    finally:
        due.enter_milestone = original
        connection.close()


def test_each_step_is_taken_once_in_order_and_never_early(
    shop: Any, pass_time: Move, servers: ThreadPoolExecutor
) -> None:
    random_, plans = random.Random(7), make_plans()
    begun = timezone.now()
    taken: dict[str, list[tuple[str, datetime]]] = defaultdict(list)
    seen = 0
    while timezone.now() - begun < timedelta(days=30):
        now = pass_time(TICK)
        report(now - begun)
        if random_.random() < 0.1:  # one is killed, and started again
            servers.submit(serve, kill=True).result()
            pass_time(timedelta(minutes=1))
        else:
            list(servers.map(serve, (False, False)))
        events = AuditEvent.objects.filter(pk__gt=seen, type="release-plan-milestone-started").order_by("pk")
        for event in events:
            taken[event.feature or ""].append((event.subject or "", timezone.now()))
            seen = event.pk
    for name, (metric, days) in plans.items():
        check_plan(name, metric, timedelta(days=days), taken[name], begun)


def check_plan(
    name: str, metric: str, interval: timedelta, taken: list[tuple[str, datetime]], begun: datetime
) -> None:
    plan = ReleasePlan.objects.select_related("active").get(flag__name=name)
    names = [milestone for milestone, _ in taken]
    assert names == [f"{share} %" for share in SHARES[1:]][: len(names)], name
    times = [begun, *(at for _, at in taken)]
    assert all(later - earlier >= interval for earlier, later in pairwise(times)), name
    broken_at = begun + BREAKS_AFTER
    if metric in ("", "good"):
        assert plan.state == "done", name
        assert len(names) == len(SHARES) - 1, name
    elif metric == "silent":
        assert max(times) <= broken_at + TICK, name
        assert plan.state in ("running", "done"), name
    else:
        assert max(times) <= broken_at + TICK, name
        assert plan.state in ("paused", "done"), name
    assert plan.active is not None
    assert plan.active.name == (names or [f"{SHARES[0]} %"])[-1], name
