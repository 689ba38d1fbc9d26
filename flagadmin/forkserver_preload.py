"""Loads the application into multiprocessing's fork server, so that forked processes start quickly."""

import os
import signal

# Stopping a service sends SIGTERM to all its processes. This one ends with the last worker.
signal.signal(signal.SIGTERM, signal.SIG_IGN)

# The processes that start these count their work.
os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)

from flagadmin.core.server.memory import keep_freed  # noqa: E402

keep_freed()

from flagadmin.worker import load  # noqa: E402

load()
