"""The shared parts of pages about a pending import: its flags after the import, without writing anything."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from flagadmin.core.errors import Conflict
from flagadmin.core.lists.pages import curl_for, make_csv_response
from groups.console import Breadcrumbs, Caller, ConsolePage
from importer.apply.execute import describe_change
from importer.bulk_work import bulk_work, run_isolated
from importer.effects import (
    PlannedStates,
    compare_plan,
    find_unmet_of_file,
    plan_states,
    predict_saved_contexts,
)
from importer.models import ImportRun
from importer.pages.preview import list_pages_above_part
from importer.plan.build import plan_import
from importer.runs import access_run, load_body
from playground.engine.context import Context
from playground.engine.evaluator import Evaluation, evaluate
from playground.pages.changes import Changes
from playground.pages.form import make_form, read_form_options
from playground.pages.lines import EffectsView, explain_by
from playground.pages.query import Label, PlaygroundQuery, read_query
from playground.pages.tables import Matrix
from playground.saved_contexts.effects import find_effects


@dataclass(frozen=True, slots=True)
class IfImported:
    """Results, small enough to send to another process: rendered, or their rows for CSV."""

    html: str = ""
    header: Sequence[str] = ()
    rows: list[list[Any]] = field(default_factory=list)
    outdated: str = ""
    used_fields: frozenset[str] = frozenset()


class PendingRunPage(ConsolePage):
    advice = ""  # for users whose import is no longer pending

    def find(self) -> None:
        self.run = access_run(self.caller, self.kwargs["run_id"])
        if self.run.state != ImportRun.State.PENDING:
            raise Conflict(f"This {self.run.noun} is no longer pending. {self.advice}")

    def get_breadcrumbs(self) -> Breadcrumbs:
        return list_pages_above_part(self.run)


def plan_run(run_id: UUID, caller: Caller) -> tuple[ImportRun, PlannedStates, str]:
    """The run, its states, and the changes since its preview. Raises NotFound, Conflict."""
    run = access_run(caller, run_id)
    states = plan_states(plan_import(load_body(run), caller=caller))
    assert run.checked_at is not None
    is_outdated = states.plan.fingerprint != run.fingerprint
    return run, states, describe_change(states.plan, run.checked_at) if is_outdated else ""


class EvaluatePage(PendingRunPage):
    """Evaluates the project's flags for one context, before and after the import, side by side."""

    template_name = "importer/evaluate.html"
    advice = "Evaluate its flags in the playground."

    def get_title(self) -> str:
        return "Evaluate as if promoted" if self.run.promoted_from else "Evaluate as if imported"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.find()
        options = read_form_options(self.caller)
        query = read_query(request.GET, default_environment=self.run.environment)
        answer = IfImported()
        if not query.problems:
            page = (query, request.GET, request.build_absolute_uri())
            answer = run_isolated(
                self.run.size, evaluate_as_if_imported, self.run.id, *page, caller=self.caller
            )
        if answer.header:
            return make_csv_response(self.request, "as-if-imported", answer.header, answer.rows)
        used = answer.used_fields & {field.name for field in options.fields}
        return self.render_to_response(
            self.get_context_data(run=self.run, form=make_form(query, options, used=used), answer=answer)
        )


@bulk_work
def evaluate_as_if_imported(
    run_id: UUID, query: PlaygroundQuery, page_query: QueryDict, link: str, *, caller: Caller
) -> IfImported:
    """Evaluates both sides. ``page_query``, ``link``: query and URL of the page. Raises NotFound, Conflict."""
    run, states, outdated = plan_run(run_id, caller)
    snapshots = states.pair.snapshots
    evaluations = _evaluate_all(query, *snapshots)
    matrix = Matrix(evaluations, [Label.of("Now"), Label.of(f"After the {run.noun}")], page_query)
    used = frozenset(name for state in snapshots for name in state.columns.fields())
    if page_query.get("format") == "csv":
        return IfImported(header=matrix.csv_header(), rows=list(matrix.csv_rows()), used_fields=used)
    context = {"matrix": matrix, "listing": matrix.listing, "flag_query": query.urlencode(), "link": link}
    html = render_to_string("includes/matrix.html", context)
    return IfImported(html, outdated=outdated, used_fields=used)


def _evaluate_all(query: PlaygroundQuery, *states: Any) -> list[Evaluation]:
    """Evaluates all with the same context, time and random numbers.

    If a field has several values, only the first is used.
    """
    now, seed = timezone.now(), random.random()
    return [
        evaluate(state, Context(query.contexts[0]), now=now, random=random.Random(seed).random)
        for state in states
    ]


IN_PREVIEW = 5
"""Flags that the preview lists."""
MAX_NOT_MET = 20
"""Expectations of the file that the page lists."""


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
