"""What the process that long work is forked from has loaded; imported nowhere else."""

import signal

# Whoever stops a service tells all its processes at once. This one ends when the last worker has finished its requests.
signal.signal(signal.SIGTERM, signal.SIG_IGN)

import flagadmin.wsgi  # noqa: E402, F401 - the whole application
