"""Deleting a project of archived flags with three strategies each, beside a bare SQL floor of the same rows.

``python -m tests.benchmarks.bench_deletion [FLAGS ...]`` (default: 100 1000 10000). The floor deletes the same tables
by id without events, checks or the revision's triggers.
"""

import sys
import time
import tracemalloc

from tests.support.live_server import allow_skipping_triggers, data_directory

TABLES = (
    ("projects_strategy", "flag_id"),
    ("projects_flagenvironment", "flag_id"),
    ("projects_flagtag", "flag_id"),
    ("projects_flag", "id"),
)


def load(project_id: str, count: int) -> None:
    from django.utils import timezone

    from projects.models import Flag, FlagEnvironment, FlagTag, Strategy
    from tests.support.cast import make_project

    make_project(project_id)
    now = timezone.now()
    flags = Flag.objects.bulk_create(
        [
            Flag(name=f"{project_id}-{n:05}", project_id=project_id, created_at=now, archived_at=now)
            for n in range(count)
        ],
        batch_size=2000,
    )
    constraint = {"contextName": "country", "operator": "IN", "values": ["NO", "SE", "DK"]}
    places = ("development", "production")
    for model, rows in (
        (FlagEnvironment, [FlagEnvironment(flag=f, environment_id=e) for f in flags for e in places]),
        (FlagTag, [FlagTag(flag=f, tag_type_id="simple", value="web") for f in flags]),
        (
            Strategy,
            [
                Strategy(
                    flag=flag,
                    environment_id="production",
                    name="flexibleRollout",
                    sort_order=order,
                    parameters={"rollout": "50", "stickiness": "default", "groupId": flag.name},
                    constraints=[constraint] * 2,
                )
                for flag in flags
                for order in range(3)
            ],
        ),
    ):
        model._base_manager.bulk_create(rows, batch_size=2000)
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def deletion(project_id: str) -> tuple[float, int, int]:
    """(seconds, statements, peak bytes of Python memory)."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from groups.access import Caller
    from projects.deletion.execute import delete_project

    tracemalloc.start()
    with CaptureQueriesContext(connection) as captured:
        start = time.perf_counter()
        delete_project(project_id, caller=Caller.system())
        seconds = time.perf_counter() - start
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return seconds, len(captured), peak


def floor(project_id: str) -> float:
    from django.db import connection, transaction

    start = time.perf_counter()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table, column in TABLES:
            cursor.execute(
                f"DELETE FROM {table} WHERE {column} IN (SELECT id FROM projects_flag WHERE project_id = %s)",
                [project_id],
            )
    return time.perf_counter() - start


def main(counts: list[int]) -> None:
    with data_directory():
        allow_skipping_triggers()
        for count in counts:
            load(f"gone{count}", count)
            load(f"floor{count}", count)
            seconds, statements, peak = deletion(f"gone{count}")
            bare = floor(f"floor{count}")
            print(
                f"{count:>6} archived flags: {seconds * 1000:8.1f} ms, {statements} statements, "
                f"peak {peak / 1e6:.2f} MB here; floor (bare DELETEs) {bare * 1000:.1f} ms"
            )


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [100, 1000, 10000])
