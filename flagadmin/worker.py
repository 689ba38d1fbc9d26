"""The module that Granian loads in each worker."""

import gc

gc.disable()  # until everything is loaded: collection takes a tenth of the time; `settle` enables it again

from flagadmin.core.metrics import attach  # noqa: E402
from flagadmin.core.server import tracing  # noqa: E402

# Before the application is loaded, which declares instruments and fixes Django's middleware.
attach("worker")
tracing.begin()

from flagadmin.rsgi import application  # noqa: E402

__all__ = ["application"]
