"""What Granian loads in each worker."""

from flagadmin.metrics.processes import attach

attach("worker")  # before the application declares its instruments

from flagadmin.server.rsgi import application  # noqa: E402

__all__ = ["application"]
