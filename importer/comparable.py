"""Offers pending imports to the playground as states to compare."""

from uuid import UUID

from django.urls import reverse
from rest_framework import serializers

from groups.access import Caller
from importer.bulk_work import bulk_work, run_isolated
from importer.effects import predict_saved_contexts
from importer.models import ImportRun
from importer.plan.build import plan_import
from importer.runs import access_run, find_visible_runs, load_body
from importer.states import ImportState, find_changes
from playground.comparison.kinds import Body, Choice, StateKind

MAX_OFFERED = 20


def _import_choices(caller: Caller) -> list[Choice]:
    """The caller's pending imports, newest first: ``shop / production: export.json, 21 Nov, 14:03 UTC``."""
    runs = find_visible_runs(caller).filter(state=ImportRun.State.PENDING).order_by("-created_at")
    return [
        (
            str(run.id),
            f"{run.project} / {run.environment}: {run.file_name or 'pasted'}, {run.created_at:%d %b, %H:%M} UTC",
        )
        for run in runs[:MAX_OFFERED]
    ]


def _read_import(caller: Caller, body: Body) -> ImportState:
    """Finds the pending import. Raises NotFound, and Conflict if it is no longer pending."""
    run = access_run(caller, body["import"])
    return run_isolated(run.size, read_planned_import, run.id, caller=caller)


@bulk_work
def read_planned_import(run_id: UUID, *, caller: Caller) -> ImportState:
    run = access_run(caller, run_id)
    plan = plan_import(load_body(run), caller=caller)
    names, definitions = find_changes(plan)
    refused = "The import would be refused as it is: its preview says why."
    return ImportState(
        plan.environment,
        plan.project,
        frozenset(names),
        definitions,
        saved_contexts=predict_saved_contexts(plan),
        url=reverse("import-evaluate", args=[run.id]),
        warnings=[] if plan.can_be_applied else [refused],
    )


def _make_field() -> serializers.UUIDField:
    return serializers.UUIDField(
        required=False,
        help_text="The id of an import of your own that is not applied yet: the flags as it would leave them.",
    )


IMPORT = StateKind(
    "import",
    _make_field,
    _read_import,
    names_environment=True,
    title="After an import",
    choices=_import_choices,
)
