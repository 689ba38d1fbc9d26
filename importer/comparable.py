"""Offers pending imports to the playground as states to compare."""

from uuid import UUID

from django.urls import reverse

from groups.access import Caller
from importer.expectations import kept_contexts
from importer.isolation import bulk_work, run_isolated
from importer.models import ImportRun
from importer.plan.build import plan_import
from importer.plan.definitions import planned_changes
from importer.runs import access_run, body_of, visible_runs
from playground.comparison.planned import PlannedImport

MAX_OFFERED = 20


def import_choices(caller: Caller) -> list[tuple[str, str]]:
    """The caller's pending imports, newest first: ``shop / production: export.json, 21 Nov, 14:03 UTC``."""
    runs = visible_runs(caller).filter(state=ImportRun.State.PENDING).order_by("-created_at")
    return [
        (
            str(run.id),
            f"{run.project} / {run.environment}: {run.file_name or 'pasted'}, {run.created_at:%d %b, %H:%M} UTC",
        )
        for run in runs[:MAX_OFFERED]
    ]


def read_import(caller: Caller, run_id: UUID) -> PlannedImport:
    """Raises NotFound, and Conflict if it is no longer pending."""
    run = access_run(caller, run_id)
    return run_isolated(run.size, planned_import, run_id, caller=caller)


@bulk_work
def planned_import(run_id: UUID, *, caller: Caller) -> PlannedImport:
    run = access_run(caller, run_id)
    plan = plan_import(body_of(run), caller=caller)
    names, documents = planned_changes(plan)
    return PlannedImport(
        plan.project,
        plan.environment,
        frozenset(names),
        documents,
        kept_contexts(plan),
        url=reverse("import-evaluate", args=[run.id]),
        notes=[] if plan.can_be_applied else ["The import would be refused as it is: its preview says why."],
    )
