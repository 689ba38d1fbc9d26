"""Loads the application into multiprocessing's fork server, so that forked processes start quickly."""

import signal

# Stopping a service sends SIGTERM to all its processes. This one ends with the last worker.
signal.signal(signal.SIGTERM, signal.SIG_IGN)

import flagadmin.wsgi  # noqa: E402, F401 - the whole application
