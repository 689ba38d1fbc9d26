"""/import/ID/evaluate/: evaluates the flags as they would be after the import, without writing anything."""

import random
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.template.loader import render_to_string
from django.utils import timezone

from flagadmin.core.lists.pages import make_csv_response
from groups.access import Caller
from importer.bulk_work import bulk_work, run_isolated
from importer.pages.if_imported import IfImported, PendingRunPage, plan_run
from playground.engine.context import Context
from playground.engine.evaluator import Evaluation, evaluate
from playground.pages.form import make_form, read_form_options
from playground.pages.matrix import Matrix
from playground.pages.query import Label, PlaygroundQuery, read_query


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
