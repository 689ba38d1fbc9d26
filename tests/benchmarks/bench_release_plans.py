"""What the background tasks of releases cost: plans that wait, half of them with safeguards, and scheduled requests.

``python -m tests.benchmarks.bench_release_plans [PLANS] [REQUESTS]`` (default: 1000 10000). A minute of the clock passes in seconds;
its CPU time, of this process and of the database's, is compared with a minute of one core. The floor is the same without
plans and requests.
"""

import os
import sys
import time
from datetime import timedelta
from typing import Any

import django

from tests.support.live_server import data_directory

TICKS = 60
METRICS = 50


def fill(plans: int, requests: int) -> None:
    from django.utils import timezone

    from groups.models import User
    from projects.models import Flag, FlagEnvironment, ImpactPoint, Project, Strategy
    from releases.models import ChangeRequest, Milestone, ReleasePlan, Safeguard, Schedule

    now = timezone.now()
    project = Project.objects.create(id="shop", name="Shop")
    flags = Flag.objects.bulk_create(
        Flag(name=f"flag-{number}", project=project, created_at=now) for number in range(plans)
    )
    FlagEnvironment.objects.bulk_create(
        FlagEnvironment(flag=flag, environment_id="production", enabled=True) for flag in flags
    )
    Strategy.objects.bulk_create(
        Strategy(flag=flag, environment_id="production", name="flexibleRollout", parameters={"rollout": "5"})
        for flag in flags
    )
    made = ReleasePlan.objects.bulk_create(
        ReleasePlan(
            flag=flag,
            environment_id="production",
            name="Careful",
            state="running",
            since=now,
            numbers_from=now - timedelta(hours=1),
            look_at=now + timedelta(seconds=index % 60) if index % 2 else now + timedelta(days=1),
        )
        for index, flag in enumerate(flags)
    )
    wait = {"intervalMinutes": 1440}
    Milestone.objects.bulk_create(
        Milestone(plan=plan, name=f"{place}", place=place, transition=wait)
        for plan in made
        for place in range(4)
    )
    for milestone in Milestone.objects.filter(place=0):
        ReleasePlan.objects.filter(pk=milestone.plan_id).update(active=milestone)
    Safeguard.objects.bulk_create(
        Safeguard(plan=plan, metric=f"m-{index % METRICS}", aggregation="avg", time_range="hour", threshold=9)
        for index, plan in enumerate(made)
        if index % 2
    )
    ImpactPoint.objects.bulk_create(
        ImpactPoint(
            name=f"m-{number}",
            at=(now - timedelta(minutes=minute)).replace(second=0, microsecond=0),
            labels=f'{{"instance":"{series}"}}',
            kind="gauge",
            value=1.0,
        )
        for number in range(METRICS)
        for minute in range(60)
        for series in range(10)
    )
    author = User.objects.create(username="bench")
    asked = ChangeRequest.objects.bulk_create(
        ChangeRequest(
            project=project,
            environment_id="production",
            author=author,
            author_name="bench",
            state="Scheduled",
        )
        for _ in range(requests)
    )
    Schedule.objects.bulk_create(
        Schedule(request=request, at=now + timedelta(days=1, seconds=index), by=author, by_name="bench")
        for index, request in enumerate(asked)
    )


def cpu_of_database() -> float:
    """Seconds of the backend that this process uses."""
    from django.db import connection

    pid = connection.connection.info.backend_pid
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure() -> tuple[float, float]:
    """Seconds of CPU in a minute: of this process, and of the database's."""
    from django.db import connection
    from django.utils import timezone

    from releases.plans.due import look_at_due
    from releases.schedules.due import apply_due

    real, begun = timezone.now, timezone.now()
    connection.ensure_connection()
    own, database = time.process_time(), cpu_of_database()
    try:
        for tick in range(TICKS):
            setattr(timezone, "now", lambda moment=begun + timedelta(seconds=tick): moment)  # noqa: B010
            look_at_due()
            apply_due()
    finally:
        setattr(timezone, "now", real)  # noqa: B010
    return time.process_time() - own, cpu_of_database() - database


def say(what: str, seconds: tuple[float, float]) -> None:
    own, database = (100 * each / TICKS for each in seconds)
    print(f"{what:42} {own:6.2f} % of a core, its database {database:6.2f} %")


def main(arguments: list[str]) -> None:
    plans, requests = (int(text) for text in (*arguments, *("1000", "10000")[len(arguments) :]))
    with data_directory():
        django.setup()
        from flagadmin.core.db.migrate import migrate

        migrate()
        measure()
        say("floor: nothing to do", measure())
        fill(plans, requests)
        statistics()
        say(f"{plans:,} plans, {requests:,} scheduled requests", measure())


def statistics() -> Any:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


if __name__ == "__main__":
    main(sys.argv[1:])
