"""The WSGI application."""

import gc
import multiprocessing
import os
import signal

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from flagadmin.server.worker_processes import SHUTDOWN_TIMEOUT, end_with_parent, stop_on_sigterm

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "flagadmin.settings")

application = get_wsgi_application()
# All views now, not within the first request of every worker: that is most of a second.
get_resolver().url_patterns  # noqa: B018 - reading it loads them
# What is loaded by now stays; no collection has to look through it again.
gc.freeze()

if multiprocessing.parent_process() is not None:
    stop_on_sigterm(SHUTDOWN_TIMEOUT)
# A worker of `serve` must not outlive it: it would keep the port and the database from the next start.
end_with_parent(lambda: os.kill(os.getpid(), signal.SIGTERM))
