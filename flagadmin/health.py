"""Probes for whoever runs the service: is the process there, and can it serve?"""

import logging
import uuid

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.views.decorators.http import require_safe

from flagadmin.errors import ServiceUnavailable

log = logging.getLogger("flagadmin.health")


@require_safe
def healthz(request: HttpRequest) -> HttpResponseBase:
    """200 as long as this process answers at all."""
    return JsonResponse({"health": "GOOD"})


@require_safe
def readyz(request: HttpRequest) -> HttpResponseBase:
    """200 when the database answers and is migrated; else 503 with an error record."""
    try:
        waiting = unapplied_migrations()
    except DatabaseError:
        return _not_ready(ServiceUnavailable())
    if waiting:
        return _not_ready(ServiceUnavailable(f"Migrations are missing: {', '.join(waiting)}."))
    return JsonResponse({"health": "GOOD"})


def _not_ready(error: ServiceUnavailable) -> JsonResponse:
    error_id = str(uuid.uuid4())
    log.error("Not ready %s: %s", error_id, error.message)
    return JsonResponse(error.record(error_id), status=error.status)


def unapplied_migrations() -> list[str]:
    """Names of migrations that the database still lacks."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]
