"""Gauges of each process: memory, database connections, version."""

import asyncio
import platform
import resource
from pathlib import Path
from time import process_time

from django.db import connections
from prometheus_client import Gauge

from flagadmin import __version__
from flagadmin.core.metrics import process_name, register_sampler, sample

SAMPLE_SECONDS = 5.0

BUILD = Gauge(
    "flagadmin_build_info", "Always 1; its labels tell what is running.", ["version", "python", "process"]
)
CPU = Gauge("flagadmin_cpu_seconds", "CPU time since the process started.", ["process"])
MEMORY = Gauge("flagadmin_resident_memory_bytes", "Memory that a process uses.", ["process"])
POOL = Gauge(
    "flagadmin_database_connections", "Connections of a process's pool.", ["database", "state", "process"]
)
WAITING = Gauge(
    "flagadmin_database_waiting",
    "Requests that wait for a connection of a process's pool.",
    ["database", "process"],
)
TIMEOUTS = Gauge(
    "flagadmin_database_timeouts",
    "Requests that got no connection, since the process started.",
    ["database", "process"],
)


async def sample_worker() -> None:
    """A task of each worker's loop."""
    while True:
        sample()
        await asyncio.sleep(SAMPLE_SECONDS)


@register_sampler
def sample_process() -> None:
    name = process_name()
    BUILD.labels(__version__, platform.python_version(), name).set(1)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    MEMORY.labels(name).set(pages * resource.getpagesize())
    CPU.labels(name).set(process_time())


@register_sampler
def sample_pools() -> None:
    name = process_name()
    for database in connections:
        pool = getattr(connections[database], "pool", None)
        if pool is not None:
            stats = pool.get_stats()
            idle = stats.get("pool_available", 0)
            POOL.labels(database, "idle", name).set(idle)
            POOL.labels(database, "used", name).set(stats.get("pool_size", 0) - idle)
            WAITING.labels(database, name).set(stats.get("requests_waiting", 0))
            TIMEOUTS.labels(database, name).set(stats.get("requests_errors", 0))
