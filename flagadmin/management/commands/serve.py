"""`manage.py serve`: migrate, then answer requests until told to stop."""

import multiprocessing
import os
import socket
import threading
from argparse import ArgumentParser
from collections import deque
from contextlib import closing, suppress
from queue import Empty, SimpleQueue
from typing import Any

import psycopg
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection, connections
from granian import Granian
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels

from flagadmin.server import background_tasks
from flagadmin.server.static_files import collect_static_files
from flagadmin.server.worker_processes import SHUTDOWN_TIMEOUT

# Any number: servers that start at once on one database migrate one after the other.
MIGRATION_LOCK = 7_325_002
HEADER_TIMEOUT_MS = 10_000  # and for which an idle connection is kept
MAX_RESPAWNS = 20  # of workers in a minute; after that something is wrong that starting again does not mend
MAX_WAIT = 1.0  # seconds until the serving loop looks by itself
ALL_INTERFACES = ("0.0.0.0", "::")  # noqa: S104 - compared, not listened on

# For the C library of the workers (mallopt(3)). An answer may be megabytes: by default such a block is given back to
# the system when freed, and mapped and cleared anew, page by page, for the next answer. That was a quarter of the time.
KEEP_FREED_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),  # bytes; glibc takes no more
    "MALLOC_TRIM_THRESHOLD_": str(128 << 20),
    "MALLOC_ARENA_MAX": "1",  # the interpreter lets one thread at a time allocate anyway
}


class Command(BaseCommand):
    help = "Bring the database up to date, then serve. Stops cleanly on SIGTERM and Ctrl+C."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on (8000)")
        parser.add_argument("--workers", type=int, default=2, help="worker processes (2)")

    def handle(self, *, host: str, port: int, workers: int, **options: Any) -> None:
        check_free(host, port)
        background_tasks.public_url = settings.PUBLIC_URL or local_url(host, port)
        try:
            check_database()
            migrate()
            collect_static_files()
            background_tasks.run_startup_tasks()
        except OperationalError as error:
            raise CommandError(f"The database is not available: {error}") from error
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from error
        # The workers make their own; none may be shared.
        connections.close_all()
        self.serve(server(host, port, workers))

    def serve(self, granian: Any) -> None:
        stop = threading.Event()
        maintenance = background_tasks.start_maintenance(stop)
        granian.on_startup(self.started)
        try:
            granian.serve()
        except SystemExit:
            # On Ctrl+C the workers may end before they are asked to: nothing went wrong.
            if not granian.interrupt_signal:
                raise
        finally:
            stop.set()
            maintenance.join(timeout=5)
            close_connections()

    def started(self) -> None:
        self.stdout.write(f"Serving at {background_tasks.public_url}/")


def check_free(host: str, port: int) -> None:
    """Raises CommandError if nothing can listen there."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with closing(socket.socket(family, kind)) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        raise CommandError(
            f"Cannot listen on {host_in_url(host)}:{port}: {error.strerror}. Give another --port or --host."
        ) from error


def local_url(host: str, port: int) -> str:
    """Where a browser on this machine finds it: every address is none that a link can have."""
    return f"http://{'localhost' if host in ALL_INTERFACES else host_in_url(host)}:{port}"


def host_in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def check_database() -> None:
    """Raises OperationalError with the server's own words; a pool would only tell that it got no connection."""
    with connection.wrap_database_errors, psycopg.connect(**connection.get_connection_params()):
        pass


def migrate() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        try:
            call_command("migrate", interactive=False, verbosity=0)
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])


class Wakeup:
    """Wakes the serving loop, in the place of Granian's own `threading.Event`.

    The handler of a signal rings, and may interrupt the loop while it begins to wait, or another ringing: an event's
    lock would be waited for by the very thread that holds it, for ever. And the loop looks by itself now and then:
    it forgets a signal that comes while it starts a worker in the place of one that was killed.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[None] = SimpleQueue()  # whose `put` may be interrupted by another

    def set(self) -> None:
        self._queue.put(None)

    def wait(self) -> None:
        with suppress(Empty):
            self._queue.put(self._queue.get(timeout=MAX_WAIT))

    def clear(self) -> None:
        with suppress(Empty):
            while True:
                self._queue.get_nowait()


class RespawnLimit(dict[int, float]):
    """When each worker was started in the place of another, as Granian keeps it: it ends the server when one of them
    dies within 5.5 seconds. A worker may be killed twice in that time; only many in a minute are a loop."""

    def __init__(self) -> None:
        super().__init__()
        self._moments: deque[float] = deque(maxlen=MAX_RESPAWNS)

    def __setitem__(self, worker: int, moment: float) -> None:
        self._moments.append(moment)
        super().__setitem__(worker, moment)

    def get(self, worker: int, default: Any = None) -> Any:
        loops = len(self._moments) == MAX_RESPAWNS and self._moments[-1] - self._moments[0] < 60
        return super().get(worker, default) if loops else default


def server(host: str, port: int, workers: int) -> Any:
    # Forked workers would share open connections and locks with this process.
    multiprocessing.set_start_method("spawn", force=True)
    for name, value in KEEP_FREED_MEMORY.items():
        os.environ.setdefault(name, value)
    granian = Granian(
        "flagadmin.server.rsgi:application",
        address=host,
        port=port,
        interface=Interfaces.RSGI,
        workers=workers,
        # HTTP/2 comes through a proxy if at all, and looking which one it is has no deadline.
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=HEADER_TIMEOUT_MS),
        websockets=False,
        respawn_failed_workers=True,
        # A worker ends by itself before, and says so. Granian's own warnings are left out: it takes one that has just
        # ended for one that had to be killed, now and then.
        workers_kill_timeout=SHUTDOWN_TIMEOUT + 5,
        log_level=LogLevels.error,
        # Through our own log, as everything else.
        log_dictconfig={"loggers": {"_granian": {"handlers": [], "propagate": True}}},
    )
    granian.main_loop_interrupt = Wakeup()  # type: ignore[assignment]
    granian.respawned_wrks = RespawnLimit()
    return granian


def close_connections() -> None:
    """Including the pools, whose connections would keep the bundled server busy while it stops."""
    connections.close_all()
    for wrapper in connections.all():
        if hasattr(wrapper, "close_pool"):
            wrapper.close_pool()
