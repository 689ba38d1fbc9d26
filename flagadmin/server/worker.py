"""The module that Granian loads in each worker."""

from flagadmin.metrics.processes import attach
from flagadmin.server import tracing

# Before the application is loaded: it declares instruments, and Django's middleware is fixed then.
attach("worker")
tracing.begin()

from flagadmin.server.rsgi import application  # noqa: E402

__all__ = ["application"]
