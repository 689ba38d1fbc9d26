"""Compiles the flags of all projects when a worker starts, so that the first large request need not wait.

It uses at most a quarter of a core, but skips its pauses if a request waits for the result. Then the database counts
the context fields that the flags use.
"""

import logging
import threading
import time
from collections.abc import Iterable, Iterator

from django.conf import settings
from django.db import Error, connection

from flagadmin.core.server.memory import on_one_stack
from playground.pages.form import choose_default_environment
from playground.response.snapshot import Batch
from playground.snapshot_cache import compile_ahead
from projects.models import Environment, Flag
from projects.used_by.queries import count_ahead

log = logging.getLogger("flagadmin.playground")

DELAY = 5.0  # seconds after the worker's start
MIN_COUNT = 5_000  # flags; fewer are compiled on demand in less than half a second
FLAG_BYTES = 5_000  # approximate size of a flag in the cache
STEP = 100  # flags: some ms of work
REST = 3  # pause after a step, in multiples of its duration


async def start() -> None:
    threading.Thread(target=on_one_stack(_run), name="compile-ahead", daemon=True).start()


def _run() -> None:
    time.sleep(DELAY)
    try:
        prepare()
    except Error as error:
        log.info("Flags were not compiled ahead: %s", error)
    finally:
        connection.close()


def prepare() -> None:
    """Does nothing for few flags. Does not compile more than the cache can hold."""
    flags = Flag.objects.active().count()
    if flags < MIN_COUNT:
        return
    if flags <= settings.SNAPSHOT_CACHE_BYTES / FLAG_BYTES:
        compile_ahead(
            choose_default_environment(list(Environment.objects.values_list("name", flat=True))),
            pause_between,
        )
    count_ahead()


def pause_between(batches: Iterable[Batch], needed: threading.Event) -> Iterator[Batch]:
    """The batches in small steps, with pauses between them until the result is ``needed``."""
    for flags, segments in batches:
        for first in range(0, len(flags), STEP):
            begun = time.perf_counter()
            yield flags[first : first + STEP], {} if first else segments
            needed.wait(REST * (time.perf_counter() - begun))
