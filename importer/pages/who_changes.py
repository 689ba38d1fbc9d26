"""/import/ID/who-changes/: how many generated users get a different result after the import, which, and why."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.template.loader import render_to_string
from django.urls import reverse

from flagadmin.core.lists.pages import curl_for, make_csv_response
from groups.access import Caller
from importer.bulk_work import bulk_work, run_isolated
from importer.expectations import find_unmet_of_file, predict_saved_contexts
from importer.pages.if_imported import IfImported, PendingRunPage, plan_run
from importer.who_changes import compare_plan
from playground.pages.changes import Changes
from playground.pages.effects_view import EffectsView
from playground.pages.lines import explain_by
from playground.saved_contexts.effects import find_effects

IN_PREVIEW = 5
"""Flags that the preview lists."""
MAX_NOT_MET = 20
"""Expectations of the file that the page names."""


class WhoChangesPage(PendingRunPage):
    """Compares the project's flags for generated users, before and after the import. The preview loads a part of it."""

    template_name = "importer/who_changes.html"
    title = "Who changes"
    advice = "Compare its flags in the playground."

    def get_curl(self) -> str:
        call = curl_for(self.request, "POST", "/api/admin/features-batch/compare")
        return f"{call} -H 'Content-Type: application/json' --data-binary @export.json"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.find()
        part = request.headers.get("HX-Target") == "who-changes"
        link = request.build_absolute_uri()
        answer = run_isolated(
            self.run.size, compare_if_imported, self.run.id, request.GET, link, part=part, caller=self.caller
        )
        if answer.header:
            return make_csv_response(self.request, "who-changes", answer.header, answer.rows)
        if part:
            self.template_name = "importer/who_changes_part.html"
        return self.render_to_response(self.get_context_data(run=self.run, answer=answer))


@bulk_work
def compare_if_imported(
    run_id: UUID, query: QueryDict, link: str, *, part: bool, caller: Caller
) -> IfImported:
    """Compares both states. ``query``, ``link``: query and URL of the page. Raises NotFound, Conflict."""
    run, states, outdated = plan_run(run_id, caller)
    plan = states.plan
    explain = explain_by(reverse("import-evaluate", args=[run.id]))
    comparison = compare_plan(states, caller=caller, flag=query.get("only", ""))
    changes = Changes(comparison, query, explain=explain, per_page=IN_PREVIEW if part else 0)
    if query.get("format") == "csv":
        return IfImported(header=changes.csv_header(), rows=list(changes.csv_rows()))
    not_met = find_unmet_of_file(states, caller=caller)
    effects = find_effects(
        caller, *states.pair.snapshots, flags=states.names, instead=predict_saved_contexts(plan)
    )
    name = "importer/who_changes_summary.html" if part else "includes/changes.html"
    dependants = sum(flag.is_known and flag.name not in plan.flags for flag in comparison.flags)
    context = {
        "changes": changes,
        "listed": changes.changing - dependants,
        "dependants": dependants,
        "concerns_most": comparison.affected > comparison.users / 2,
        "listing": changes.listing,
        "link": link,
        "noun": run.noun,
        "url": reverse("import-who-changes", args=[run.id]),
        "saved": EffectsView(effects),
        "not_met": not_met[:MAX_NOT_MET],
        "more_not_met": len(not_met[MAX_NOT_MET:]),
    }
    return IfImported(render_to_string(name, context), outdated=outdated)
