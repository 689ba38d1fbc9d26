"""Probes for whoever runs the service: is the process there, and can it serve?"""

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.views.decorators.http import require_safe


@require_safe
def healthz(request: HttpRequest) -> HttpResponseBase:
    """200 as long as this process answers at all."""
    return JsonResponse({"health": "GOOD"})


@require_safe
def readyz(request: HttpRequest) -> HttpResponseBase:
    """200 when the database answers and is migrated; else 503."""
    waiting = unapplied_migrations()
    if waiting:
        return JsonResponse({"health": "BAD", "unapplied": waiting}, status=503)
    return JsonResponse({"health": "GOOD"})


def unapplied_migrations() -> list[str]:
    """Names of migrations that the database still lacks."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]
