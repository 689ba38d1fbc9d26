"""The beginning of a worker, a fork of `serve` that has loaded the application (`flagadmin/loading.py`)."""

from typing import Any

from flagadmin.core.metrics import attach
from flagadmin.core.server import tracing
from flagadmin.core.server.memory import keep_freed
from flagadmin.core.server.worker_processes import SHUTDOWN_TIMEOUT, begin_fork, stop_on_sigterm


def start(target: str) -> Any:
    """The RSGI application for Granian, which ignores its ``target``."""
    begin_fork("flagadmin-work")
    stop_on_sigterm(SHUTDOWN_TIMEOUT)
    keep_freed()
    attach("worker")
    tracing.begin()  # before Django's middleware is made
    from flagadmin.rsgi import application

    return application
