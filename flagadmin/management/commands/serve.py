"""`manage.py serve`: migrates the database, then serves until SIGTERM or Ctrl+C."""

import logging
import socket
from argparse import ArgumentParser
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from granian import Granian
from granian.constants import HTTPModes, Interfaces
from granian.log import LogLevels

from flagadmin.core import metrics
from flagadmin.core.db import commits
from flagadmin.core.db.migrate import NewerDatabaseError, check_reachable, is_empty, migrate
from flagadmin.core.server import background_tasks, tracing
from flagadmin.core.server.activation import ActivationError, serve_on, take_passed_socket
from flagadmin.core.server.event_streams import OTHERS, raise_limit
from flagadmin.core.server.memory import keep_freed
from flagadmin.core.server.slow_clients import HTTP1
from flagadmin.core.server.static_files import collect_static_files
from flagadmin.core.server.worker_processes import (
    SHUTDOWN_TIMEOUT,
    begin_fork,
    fork_from_now_on,
    stop_on_sigterm,
)
from flagadmin.worker import load

log = logging.getLogger("flagadmin.runtime")

MIN_SECRET_KEY = 32  # characters
CONNECTIONS = 512  # for each worker, in addition to its streams
MAX_RESPAWNS = 20  # respawned workers in a minute; more indicate an error that restarting does not fix
PROBE_TIMEOUT = 5.0  # seconds until a worker accepts a connection
MAX_WAIT = 0.2  # seconds until the serving loop checks unprompted
ALL_INTERFACES = ("0.0.0.0", "::")  # noqa: S104 - used for a comparison only


class Command(BaseCommand):
    help = "Migrate the database, then serve. Stops cleanly on SIGTERM and Ctrl+C."
    stealth_options = ("greeting",)  # passed by commands that serve: the text before the address

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on (8000)")
        parser.add_argument("--workers", type=int, default=2, help="worker processes (2)")

    def handle(self, *, host: str, port: int, workers: int, greeting: str = "", **options: Any) -> None:
        keep_freed()
        try:
            listener = take_passed_socket()
        except ActivationError as error:
            raise CommandError(str(error)) from error
        if listener:
            host, port = listener.getsockname()[:2]
        else:
            check_free(host, port)
        background_tasks.public_url = settings.PUBLIC_URL or make_local_url(host, port)
        check_secret_key(settings.SECRET_KEY)
        try:
            check_reachable()
            if is_empty():
                self.stdout.write(
                    "The database is empty: creating flagadmin's tables, which takes a few seconds."
                )
            migrate()
            collect_static_files()
            commits.limit_size()
            load()
            background_tasks.run_startup_tasks()
        except (ImproperlyConfigured, NewerDatabaseError) as error:
            raise CommandError(str(error)) from error
        # Workers open their own connections; none may be shared, and no thread of a pool be lost.
        close_connections()
        if settings.METRICS_TOKEN:
            begin_metrics(settings.DATA_DIR / "metrics" / str(port))
        if tracing.is_wanted() and not tracing.is_installed():
            log.warning(
                "There are no traces: their packages are not installed (pip install 'flagadmin[tracing]')."
            )
        load()
        fork_from_now_on()
        granian = make_server(host, port, workers)
        if listener:
            serve_on(granian, listener)
        self.serve(granian, f"{greeting}\nServing at {background_tasks.public_url}/".lstrip(), (host, port))

    def serve(self, granian: Any, text: str, address: tuple[str, int]) -> None:
        """Serves until told to stop. Prints the text once a worker accepts connections: a browser that opens the
        address earlier is refused.
        """
        maintenance, left = background_tasks.MaintenanceProcess(), [text]

        def work() -> None:
            try:
                maintenance.keep()
                if left and accepts(address):
                    self.stdout.write(left.pop())
            except (
                OSError
            ):  # no room for a process or for output must not end the loop that keeps the workers
                log.exception("flagadmin serves on, and tries again.")

        granian.main_loop_interrupt = Wakeup(work)  # called once the workers have been forked
        try:
            granian.serve(target_loader=start_worker)
        except SystemExit:
            # On Ctrl+C, workers may exit before this process stops them, which is not an error.
            if not granian.interrupt_signal:
                raise
        finally:
            maintenance.end()


def accepts(address: tuple[str, int]) -> bool:
    with suppress(OSError), socket.create_connection(address, timeout=PROBE_TIMEOUT):
        return True
    return False


def begin_metrics(directory: Path) -> None:
    """Prepares the metrics. Raises CommandError, for example on a full disk."""
    try:
        metrics.begin(directory)
    except OSError as error:
        raise CommandError(f"Metrics cannot be kept in {directory}: {error.strerror}.") from error


def check_secret_key(key: str) -> None:
    """Raises CommandError if the key is so short that it could be guessed, and with it every session forged."""
    if len(key) < MIN_SECRET_KEY:
        raise CommandError(
            f"SECRET_KEY has {len(key)} characters, but needs at least {MIN_SECRET_KEY}. Set it to the output of "
            "`openssl rand -hex 32`, and the present one as SECRET_KEY_FALLBACKS if it has been in use."
        )


def check_free(host: str, port: int) -> None:
    """Raises CommandError if the address is not available."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with closing(socket.socket(family, kind)) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        raise CommandError(
            f"Cannot listen on {format_host(host)}:{port}: {error.strerror}. Choose another --port or --host."
        ) from error


def make_local_url(host: str, port: int) -> str:
    """The URL for a browser on this machine."""
    return f"http://{'localhost' if host in ALL_INTERFACES else format_host(host)}:{port}"


def format_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class Wakeup:
    """Wakes Granian's serving loop; replaces its `threading.Event`, which can deadlock.

    A signal handler calls `set`, and may interrupt the same thread inside `wait` or `set`. It would then wait forever
    for the event's lock, which its own thread holds. `wait` also returns after MAX_WAIT, because the loop misses a
    signal that arrives while it replaces a killed worker. It calls ``work`` first.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._queue: SimpleQueue[None] = SimpleQueue()  # its `put` is reentrant
        self._work = work

    def set(self) -> None:
        self._queue.put(None)

    def wait(self) -> None:
        self._work()
        with suppress(Empty):
            self._queue.put(self._queue.get(timeout=MAX_WAIT))

    def clear(self) -> None:
        with suppress(Empty):
            while True:
                self._queue.get_nowait()


class RespawnLimit(dict[int, float]):
    """Replaces Granian's record of respawn times, to allow more respawns.

    Granian stops the server if a respawned worker dies within 5.5 seconds, but a worker may be killed twice
    in that time. Only more than MAX_RESPAWNS in a minute count as a crash loop.
    """

    def __init__(self) -> None:
        super().__init__()
        self._moments: deque[float] = deque(maxlen=MAX_RESPAWNS)

    def __setitem__(self, worker: int, moment: float) -> None:
        self._moments.append(moment)
        super().__setitem__(worker, moment)

    def get(self, worker: int, default: Any = None) -> Any:
        loops = len(self._moments) == MAX_RESPAWNS and self._moments[-1] - self._moments[0] < 60
        return super().get(worker, default) if loops else default


def make_server(host: str, port: int, workers: int) -> Any:
    raise_limit(settings.STREAMS_LIMIT + OTHERS)
    granian = Granian(
        "flagadmin.rsgi:application",
        address=host,
        port=port,
        interface=Interfaces.RSGI,
        workers=workers,
        # Granian's detection of HTTP/2 has no timeout; HTTP/2 clients connect through a proxy.
        http=HTTPModes.http1,
        http1_settings=HTTP1,
        websockets=False,
        # By default, a worker accepts at most 1,024 divided by the number of workers at a time.
        backpressure=CONNECTIONS + settings.STREAMS_LIMIT,
        respawn_failed_workers=True,
        # Workers end and log before this timeout. Granian's warnings are suppressed, because it sometimes
        # mistakes a worker that has just ended for one that had to be killed.
        workers_kill_timeout=SHUTDOWN_TIMEOUT + 5,
        log_level=LogLevels.error,
        # Sends Granian's messages to the application's log.
        log_dictconfig={"loggers": {"_granian": {"handlers": [], "propagate": True}}},
    )
    granian.respawned_wrks = RespawnLimit()
    return granian


def start_worker(target: str) -> Any:
    """Called by Granian in each worker, a fork of `serve`. Returns the RSGI application."""
    begin_fork("flagadmin-work")
    stop_on_sigterm(SHUTDOWN_TIMEOUT)
    metrics.attach("worker")
    tracing.begin()  # before Django's middleware is made
    from flagadmin.rsgi import application

    return application


def close_connections() -> None:
    """Closes connections and pools. Pooled connections would delay stopping the bundled server."""
    connections.close_all()
    for wrapper in connections.all():
        if hasattr(wrapper, "close_pool"):
            wrapper.close_pool()
