"""What integrations cost a change, and how many deliveries a second one server makes, beside bare requests.

``python -m tests.benchmarks.bench_integrations [INTEGRATIONS] [EVENTS]`` (default: 100 1000). The receiver is a process of its
own, and says how many events came out of order. A change is one recorded event in its own transaction, whose commit does not wait
for the disk; its floor is the same with the trigger of version 1.2, which gives the transaction no id beforehand. Both are measured
in turn. CPU is that of the one process that sends, without the database's.
"""

import statistics
import sys
import threading
import time
from itertools import pairwise
from multiprocessing import get_context
from typing import Any

import django

from tests.support.live_server import data_directory

ROUNDS, CHANGES, BARE = 20, 200, 2000
TRIGGERS = {
    "before 1.3": ("AFTER", "PERFORM set_config('flagadmin.audited', 'on', true); RETURN NULL;"),
    "now": (
        "BEFORE",
        "PERFORM pg_current_xact_id(), set_config('flagadmin.audited', 'on', true); RETURN NULL;",
    ),
}


def receive(pipe: Any) -> None:
    django.setup()
    from tests.support.receiver import receiving

    with receiving() as receiver:
        pipe.send(receiver.url)
        pipe.recv()
        pipe.send(sum(map(count_disorder, group_by_path(receiver).values())))


def group_by_path(receiver: Any) -> dict[str, list[int]]:
    """The ids of the events, by the path of the integration, as they arrived."""
    ids: dict[str, list[int]] = {}
    for request in receiver.got:
        if not request.path.endswith("/bare"):
            ids.setdefault(request.path, []).append(request.json()["id"])
    return ids


def count_disorder(ids: list[int]) -> int:
    return sum(earlier > later for earlier, later in pairwise(ids))


def use_trigger(name: str) -> None:
    from django.db import connection

    when, body = TRIGGERS[name]
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE OR REPLACE FUNCTION measured() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$"
        )
        cursor.execute("DROP TRIGGER IF EXISTS measured ON audit_auditevent")
        cursor.execute(
            f"CREATE TRIGGER measured {when} INSERT ON audit_auditevent FOR EACH STATEMENT EXECUTE FUNCTION measured()"
        )


def change(count: int) -> float:
    """Seconds for each of so many changes."""
    from django.db import transaction

    from flagadmin.core.audit.events import EventType
    from flagadmin.core.audit.record import Event, record
    from groups.access import Caller

    begun = time.perf_counter()
    for number in range(count):
        with transaction.atomic():
            event = Event(
                type=EventType.FEATURE_CREATED, project="shop", feature=f"flag-{number}", after={"n": 1}
            )
            record(event, actor=Caller.system())
    return (time.perf_counter() - begun) / count


def measure_changes() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT tgname FROM pg_trigger WHERE tgname LIKE 'pgtrigger_audited%%'")
        cursor.execute(f"ALTER TABLE audit_auditevent DISABLE TRIGGER {cursor.fetchone()[0]}")
        cursor.execute("SET synchronous_commit = off")
    seconds: dict[str, list[float]] = {name: [] for name in TRIGGERS}
    for _ in range(ROUNDS):
        for name in TRIGGERS:
            use_trigger(name)
            seconds[name].append(change(CHANGES))
    floor, now = (statistics.median(seconds[name]) * 1e6 for name in ("before 1.3", "now"))
    print(f"a change: {now:.0f} µs; floor (trigger of 1.2) {floor:.0f} µs, {100 * (now / floor - 1):+.1f} %")
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER measured ON audit_auditevent")
        cursor.execute("ALTER TABLE audit_auditevent ENABLE TRIGGER USER")


def measure_deliveries(url: str, integrations: int, events: int) -> None:
    from django.conf import settings

    from integrations.deliveries import sender
    from integrations.deliveries.connections import Connection
    from integrations.deliveries.sender import relay
    from integrations.models import Delivery
    from tests.support.receiver import LOOPBACK, make_integration

    settings.INTEGRATION_NETWORKS = LOOPBACK
    relay()
    for number in range(integrations):
        make_integration(f"{url}/{number}")
    change(events)
    begun, cpu = time.perf_counter(), time.process_time()
    made = relay()
    relayed = time.perf_counter() - begun
    stop = threading.Event()
    threading.Thread(target=sender.run, args=(stop,), daemon=True).start()
    while Delivery.objects.filter(state="pending").exists():
        time.sleep(0.2)
    rate, cpu = made / (time.perf_counter() - begun), (time.process_time() - cpu) / made
    stop.set()
    failed = Delivery.objects.exclude(state="success").count()
    receiver, body = Connection(), b"x" * 400
    begun = time.perf_counter()
    for _ in range(BARE):
        receiver.post(f"{url}/bare", body, {})
    bare = BARE / (time.perf_counter() - begun)
    print(
        f"{made:,} deliveries ({integrations} × {events}): read from the log in {relayed:.2f} s, {rate:,.0f} a second, "
        f"{1000 * cpu:.2f} ms of CPU each, {failed} not delivered; floor (bare requests, one connection) {bare:,.0f} a second"
    )


def main(integrations: int, events: int) -> None:
    with data_directory():
        ours, theirs = get_context("spawn").Pipe()
        process = get_context("spawn").Process(target=receive, args=(theirs,), daemon=True)
        measure_changes()
        process.start()
        measure_deliveries(ours.recv(), integrations, events)
        ours.send("end")
        print(f"{ours.recv()} out of order")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*(given + [100, 1000][len(given) :]))
