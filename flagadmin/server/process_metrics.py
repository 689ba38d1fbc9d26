"""Gauges of each process: memory, database connections, version."""

import asyncio
import platform
import resource
from pathlib import Path
from time import process_time

from django.db import connections

from flagadmin import __version__
from flagadmin.metrics import Gauge, sampled
from flagadmin.metrics.instruments import attach, sample

SAMPLE_SECONDS = 5.0

BUILD = Gauge("flagadmin_build_info", "Always 1; its labels tell what is running.", "version", "python")
CPU = Gauge("flagadmin_cpu_seconds", "CPU time since the process started.")
MEMORY = Gauge("flagadmin_resident_memory_bytes", "Memory that a process uses.")
POOL = Gauge("flagadmin_database_connections", "Connections of a process's pool.", "database", "state")
WAITING = Gauge(
    "flagadmin_database_waiting", "Requests that wait for a connection of a process's pool.", "database"
)
TIMEOUTS = Gauge(
    "flagadmin_database_timeouts", "Requests that got no connection, since the process started.", "database"
)


async def sample_worker() -> None:
    """A task of each worker's loop."""
    attach("worker")
    while True:
        sample()
        await asyncio.sleep(SAMPLE_SECONDS)


@sampled
def sample_process() -> None:
    BUILD.set(1, __version__, platform.python_version())
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    MEMORY.set(pages * resource.getpagesize())
    CPU.set(process_time())


@sampled
def sample_pools() -> None:
    for database in connections:
        pool = getattr(connections[database], "pool", None)
        if pool is not None:
            stats = pool.get_stats()
            idle = stats.get("pool_available", 0)
            POOL.set(idle, database, "idle")
            POOL.set(stats.get("pool_size", 0) - idle, database, "used")
            WAITING.set(stats.get("requests_waiting", 0), database)
            TIMEOUTS.set(stats.get("requests_errors", 0), database)
