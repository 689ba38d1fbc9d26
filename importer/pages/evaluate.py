"""/import/ID/evaluate/: what users would get had the import been made. Nothing is written."""

import random
from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.urls import path, reverse
from django.utils import timezone

from flagadmin.errors import Conflict
from flagadmin.pages import csv_response
from groups.pages.base import ConsolePage
from importer.definitions import planned_definitions
from importer.models import ImportRun
from importer.runs import access_run, check_run
from playground.asked import Asked, read_asked
from playground.engine.context import Context
from playground.engine.evaluator import Evaluation, evaluate
from playground.form import make_form, read_known
from playground.results import Matrix
from playground.snapshot import snapshot
from playground.wire import compile_playground


class EvaluatePage(ConsolePage):
    """The project's flags for one context, now and after the import, side by side."""

    template_name = "importer/evaluate.html"
    title = "Evaluate as if imported"

    def crumbs(self) -> Sequence[tuple[str, str]]:
        name = f"Import into {self.run.project} / {self.run.environment}"
        return (("Past imports", "/imports/"), (name, reverse("import-run", args=[self.run.id])))

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.run = access_run(self.caller, kwargs["run_id"])
        if self.run.state != ImportRun.State.PENDING:
            raise Conflict("This import no longer waits: look at its flags in the playground.")
        known = read_known(self.caller)
        asked = read_asked(request.GET, default_environment=self.run.environment)
        evaluations = [] if asked.problems else self.evaluations(asked)
        used = {name for evaluation in evaluations for name in evaluation.snapshot.columns.fields()}
        context: dict[str, Any] = {
            "run": self.run,
            "form": make_form(asked, known, used=used & {field.name for field in known.fields}),
        }
        if evaluations:
            matrix = Matrix(evaluations, ["Now", "After the import"], request.GET, only_differences=True)
            if request.GET.get("format") == "csv":
                return csv_response("as-if-imported", matrix.csv_header(), matrix.csv_rows())
            context |= {"matrix": matrix, "listing": matrix.listing, "flag_query": asked.query()}
        return self.render_to_response(self.get_context_data(**context))

    def evaluations(self, asked: Asked) -> list[Evaluation]:
        """The same question, time and luck for both; of several values of a field, the first counts."""
        plan = check_run(self.run, caller=self.caller)
        planned = planned_definitions(plan)
        now, seed = timezone.now(), random.random()
        return [
            evaluate(compiled, Context(asked.contexts[0]), now=now, random=random.Random(seed).random)
            for compiled in (
                snapshot([self.run.project], self.run.environment),
                compile_playground(planned.flags, planned.segments, environment=self.run.environment),
            )
        ]


urlpatterns = [path("import/<uuid:run_id>/evaluate/", EvaluatePage.as_view(), name="import-evaluate")]
