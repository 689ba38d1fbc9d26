"""The WSGI application, fully loaded on import so that the first request of a worker is not slow."""

import multiprocessing
import os
import signal
from functools import lru_cache
from typing import Any

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from flagadmin.core.hook import load_all
from flagadmin.core.server.memory import settle
from flagadmin.core.server.worker_processes import SHUTDOWN_TIMEOUT, end_with_parent, stop_on_sigterm

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "flagadmin.settings")

PATHS, MAX_LENGTH = 1_000, 200  # remembered paths, and characters of each


def remember_routes(resolver: Any) -> None:
    """Finds the views of recent paths without Django's search, which compares a path with up to 300 patterns."""
    search, remembered = resolver.resolve, lru_cache(PATHS)(resolver.resolve)
    resolver.resolve = lambda path: (remembered if len(path) <= MAX_LENGTH else search)(path)


application = get_wsgi_application()
# Load all views now, which takes most of a second, rather than in the first request of every worker.
get_resolver().url_patterns  # noqa: B018 - reading it loads them
remember_routes(get_resolver())
load_all()
settle()

if multiprocessing.parent_process() is not None:
    stop_on_sigterm(SHUTDOWN_TIMEOUT)
# A worker that outlived `serve` would keep the port and the database in use at the next start.
end_with_parent(lambda: os.kill(os.getpid(), signal.SIGTERM))
