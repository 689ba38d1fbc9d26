"""The module that Granian loads in each worker."""

import gc

gc.disable()  # until everything is loaded: collecting takes a tenth of the time, and `settle` ends it

from flagadmin.core.metrics.processes import attach  # noqa: E402
from flagadmin.core.server import tracing  # noqa: E402

# Before the application is loaded: it declares instruments, and Django's middleware is fixed then.
attach("worker")
tracing.begin()

from flagadmin.rsgi import application  # noqa: E402

__all__ = ["application"]
