"""The playground's page that compares two queries."""

from typing import Any

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.urls import reverse_lazy
from django.utils import timezone

from flagadmin.core.errors import ValidationError
from flagadmin.core.lists.pages import curl_for, make_csv_response
from playground.engine.evaluator import Evaluation
from playground.pages.evaluations import (
    evaluate_columns,
    find_used_fields,
    get_engine_snapshots,
    load_shown_snapshots,
)
from playground.pages.form import FormOptions, make_form, read_form_options
from playground.pages.kept_contexts import keep_if_long
from playground.pages.matrix import Matrix
from playground.pages.query import PlaygroundQuery, label_columns
from playground.pages.saved import offer_saved
from playground.pages.views import FILTERS, PATHS, QueryPage, join_sides


class ComparePage(QueryPage):
    """Compares two queries. Shows only the flags that differ, unless all are requested."""

    template_name = "playground/compare.html"
    restores = True
    title = "Side by side"
    page_now = reverse_lazy("playground")

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        sides = self.sides(request.POST, read_form_options(self.caller))
        for query in sides.values():
            keep_if_long(query, self.caller)
        return HttpResponseRedirect(self.url(join_sides(sides), filtered=True))

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        options = read_form_options(self.caller)
        sides = self.sides(request.GET, options)
        evaluations = self.evaluate(sides, options)
        context: dict[str, Any] = {
            "forms": [
                make_form(
                    query,
                    options,
                    used=find_used_fields(evaluations, options),
                    prefix=prefix,
                    saved=offer_saved(self.caller, query),
                )
                for prefix, query in sides.items()
            ],
            "swap": self.url(join_sides({"a.": sides["b."], "b.": sides["a."]}), filtered=True),
            "link": request.build_absolute_uri(self.url(join_sides(sides), filtered=True)),
            "pasts": list(filter(None, map(self.past, sides.values()))),
        }
        if not evaluations:
            context["problems"] = [problem for query in sides.values() for problem in query.problems]
            return self.render_to_response(self.get_context_data(**context), status=400)
        context["curl"] = "\n".join(
            curl_for(request, "POST", PATHS[query.several], query.body()) for query in sides.values()
        )
        columns = [column for query in sides.values() for column in query.dated_columns]
        matrix = Matrix(evaluations, label_columns(columns), request.GET)
        if request.GET.get("format") == "csv":
            return make_csv_response(self.request, "compare", matrix.csv_header(), matrix.csv_rows())
        return self.shown(context, matrix=matrix, listing=matrix.listing, flag_query=sides["a."].urlencode())

    def sides(self, parameters: QueryDict, options: FormOptions) -> dict[str, PlaygroundQuery]:
        """The queries of both sides. By default, they differ in the environment. Parameters without a side are for
        both."""
        others = [name for name in options.environments if name != options.default_environment]
        defaults = {"a.": (others or [options.default_environment])[0], "b.": options.default_environment}
        if parameters and not any(name.startswith(tuple(defaults)) for name in parameters):
            shared = [
                (name, text) for name, texts in parameters.lists() for text in texts if name not in FILTERS
            ]
            parameters = parameters.copy()
            for prefix in defaults:
                for name, text in shared:
                    if name not in ("project", "environment"):
                        parameters.appendlist(prefix + name, text)
            places = list(dict.fromkeys(parameters.getlist("environment")))
            for prefix, column in zip(defaults, places if len(places) == len(defaults) else (), strict=False):
                parameters.appendlist(f"{prefix}environment", column)
        return {
            prefix: self.query_of(parameters, environment, prefix) for prefix, environment in defaults.items()
        }

    def evaluate(self, sides: dict[str, PlaygroundQuery], options: FormOptions) -> list[Evaluation]:
        evaluations: list[Evaluation] = []
        now = timezone.now()
        for query in sides.values():
            if not query.problems:
                try:
                    snapshots = get_engine_snapshots(load_shown_snapshots(self.caller, query, options))
                    evaluations += evaluate_columns(query, snapshots, now)
                except ValidationError as error:
                    query.problems.extend(error.details)
        return [] if any(query.problems for query in sides.values()) else evaluations
