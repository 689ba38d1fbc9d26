"""The WSGI application."""

import gc
import multiprocessing
import os
import signal
import threading

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "flagadmin.settings")

application = get_wsgi_application()
# All views now, not within the first request of every worker: that is most of a second.
get_resolver().url_patterns  # noqa: B018 - reading it loads them
# What is loaded by now stays; no collection has to look through it again.
gc.freeze()


def end_with_parent() -> None:
    """A worker of `serve` must not outlive it: it would keep the port and the database from the next start."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_wait_for_end, args=(parent,), name="parent-watch", daemon=True).start()


def _wait_for_end(parent: "multiprocessing.process.BaseProcess") -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


end_with_parent()
