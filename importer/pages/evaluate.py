"""/import/ID/evaluate/: evaluates the flags as they would be after the import, without writing anything."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.template.loader import render_to_string
from django.utils import timezone

from flagadmin.core.errors import Conflict
from flagadmin.core.lists.pages import make_csv_response
from groups.access import Caller
from groups.console import Breadcrumbs, ConsolePage
from importer.apply.execute import describe_change
from importer.bulk_work import bulk_work, run_isolated
from importer.models import ImportRun
from importer.pages.naming import list_pages_above_part
from importer.plan.build import plan_import
from importer.plan.definitions import build_definitions
from importer.runs import access_run, load_body
from playground.engine.context import Context
from playground.engine.evaluator import Evaluation, evaluate
from playground.pages.form import make_form, read_form_options
from playground.pages.matrix import Matrix
from playground.pages.query import Label, PlaygroundQuery, read_query
from playground.response.snapshot import compile_playground
from playground.snapshot_cache import load_snapshot


@dataclass(frozen=True, slots=True)
class AsIfImported:
    """The results, small enough to send to another process: the rendered table, or its rows for CSV."""

    used_fields: frozenset[str]
    outdated: str = ""
    html: str = ""
    header: Sequence[str] = ()
    rows: list[list[Any]] = field(default_factory=list)


class EvaluatePage(ConsolePage):
    """Evaluates the project's flags for one context, before and after the import, side by side."""

    template_name = "importer/evaluate.html"

    def get_title(self) -> str:
        return "Evaluate as if promoted" if self.run.promoted_from else "Evaluate as if imported"

    def get_breadcrumbs(self) -> Breadcrumbs:
        return list_pages_above_part(self.run)

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.run = access_run(self.caller, kwargs["run_id"])
        if self.run.state != ImportRun.State.PENDING:
            raise Conflict(
                f"This {self.run.noun} is no longer pending. Evaluate its flags in the playground."
            )
        options = read_form_options(self.caller)
        query = read_query(request.GET, default_environment=self.run.environment)
        answer = AsIfImported(frozenset())
        if not query.problems:
            link = request.build_absolute_uri()
            answer = run_isolated(
                self.run.size,
                evaluate_as_if_imported,
                self.run.id,
                query,
                request.GET,
                link,
                caller=self.caller,
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
) -> AsIfImported:
    """Evaluates both sides. ``page_query``, ``link``: query and URL of the page. Raises NotFound, Conflict."""
    run = access_run(caller, run_id)
    plan = plan_import(load_body(run), caller=caller)
    planned = build_definitions(plan)
    compiled = compile_playground(planned.flags, planned.segments, environment=run.environment).snapshot
    present = load_snapshot([run.project], run.environment).snapshot
    evaluations = _evaluate_all(query, present, compiled)
    matrix = Matrix(evaluations, [Label.of("Now"), Label.of(f"After the {run.noun}")], page_query)
    used = frozenset(name for state in (present, compiled) for name in state.columns.fields())
    if page_query.get("format") == "csv":
        return AsIfImported(used, header=matrix.csv_header(), rows=list(matrix.csv_rows()))
    context = {"matrix": matrix, "listing": matrix.listing, "flag_query": query.urlencode(), "link": link}
    assert run.checked_at is not None
    outdated = describe_change(plan, run.checked_at) if plan.fingerprint != run.fingerprint else ""
    return AsIfImported(used, outdated, render_to_string("includes/matrix.html", context))


def _evaluate_all(query: PlaygroundQuery, *states: Any) -> list[Evaluation]:
    """Evaluates all with the same context, time and random numbers.

    If a field has several values, only the first is used.
    """
    now, seed = timezone.now(), random.random()
    return [
        evaluate(state, Context(query.contexts[0]), now=now, random=random.Random(seed).random)
        for state in states
    ]
