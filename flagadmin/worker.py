"""The module that Granian loads in each worker."""

from flagadmin.core.metrics.processes import attach
from flagadmin.core.server import tracing

# Before the application is loaded: it declares instruments, and Django's middleware is fixed then.
attach("worker")
tracing.begin()

from flagadmin.rsgi import application  # noqa: E402

__all__ = ["application"]
