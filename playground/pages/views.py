"""The playground's pages: all flags for one context, one flag in detail, and two queries compared."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import orjson
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.utils.functional import Promise

from flagadmin.core.errors import NotFound, ValidationError, check_problems
from flagadmin.core.lists.pages import curl_for, make_csv_response
from groups.console import Breadcrumbs, ConsolePage
from playground.comparison.past import compile_flag_then, describe_request
from playground.comparison.states import Stored
from playground.engine.compilation import compile_snapshot
from playground.engine.evaluator import Evaluation
from playground.engine.snapshot import Snapshot
from playground.pages.evaluations import (
    evaluate_columns,
    find_used_fields,
    get_engine_snapshots,
    load_shown_snapshots,
    make_past_request,
    read_shown_revisions,
)
from playground.pages.flag_detail import MAX_CONDITIONS, FlagDetails, read_strategy_titles
from playground.pages.form import FormOptions, fill_with_saved, make_form, offer_saved, read_form_options
from playground.pages.query import (
    PlaygroundQuery,
    keep_if_long,
    label_columns,
    list_removals,
    read_query,
    restore_kept,
)
from playground.pages.tables import Matrix, Results
from playground.queries import render_advanced_features
from playground.request import split_context
from playground.response.writer import render_features
from playground.saved_contexts.actions import may_save
from projects.console import flag_url
from projects.history.definitions_at import is_in_future
from projects.models import Flag

PATHS = {False: "/api/admin/playground", True: "/api/admin/playground/advanced"}
FILTERS = ("q", "result", "variant", "show", "sort", "page")  # parameters that are not part of the query
MAX_COLUMNS = 20  # in the details of one flag


class QueryPage(ConsolePage):
    """A page whose form uses POST, for contexts of any length, and redirects to a URL for the results."""

    page_now: str | Promise = (
        ""  # the page for the query without its past moment, if it differs from this one
    )

    def query_of(self, parameters: QueryDict, environment: str, prefix: str = "") -> PlaygroundQuery:
        filled, problems = fill_with_saved(restore_kept(parameters, prefix), self.caller, prefix)
        query = read_query(filled, default_environment=environment, prefix=prefix)
        query.problems.extend(problems)
        return query

    def url(self, pairs: Sequence[tuple[str, str]], *, filtered: bool = False) -> str:
        """The URL of a query, optionally with the filters of this request."""
        first = (
            {"page"} if self.request.method == "POST" else set()
        )  # other results start at their first page
        filters = [
            (name, self.request.GET[name]) for name in FILTERS if name in self.request.GET.keys() - first
        ]
        return f"{self.request.path}?{urlencode([*pairs, *(filters if filtered else [])])}"

    def past(self, query: PlaygroundQuery) -> dict[str, Any]:
        """The page's information about the query's past or future moment; empty for now."""
        if query.at is None or query.problems:
            return {}
        present = replace(query, at=None).urlencode()
        page = self.page_now or self.request.path
        return {
            "at": query.at,
            "is_ahead": is_in_future(query.at),
            "notes": describe_request(self.caller, *make_past_request(query)),
            "now": f"{page}?{present}",
        }

    def shown(self, context: dict[str, Any], **more: Any) -> HttpResponseBase:
        """Renders the page at once, so that it does not keep the results."""
        page = self.render_to_response(self.get_context_data(**context, **more))
        assert isinstance(page, TemplateResponse)
        page.render().context_data = None
        return page


class PlaygroundPage(QueryPage):
    template_name = "playground/playground.html"
    restores = True
    title = "Playground"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        query = self.query_of(request.POST, read_form_options(self.caller).default_environment)
        keep_if_long(query, self.caller)
        return HttpResponseRedirect(self.url(query.pairs(), filtered=True))

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        options = read_form_options(self.caller)
        self.query = self.query_of(request.GET, options.default_environment)
        evaluations = self.evaluate(options)
        if evaluations and request.GET.get("format") == "json":
            return HttpResponse(self.as_json(evaluations), content_type="application/json")
        context: dict[str, Any] = {
            "query": self.query,
            "form": make_form(
                self.query,
                options,
                used=find_used_fields(evaluations, options, flag=request.GET.get("q", "")),
                saved=offer_saved(self.caller, self.query),
            ),
            "save": self.save_link(),
            "several_projects": len(self.query.projects or options.projects) > 1,
            "link": request.build_absolute_uri(self.url(self.query.pairs(), filtered=True)),
            "compare": self.compare_link(),
            "flag_query": self.query.urlencode(),
            "past": self.past(self.query),
        }
        if self.query.several and evaluations:
            return self.several(evaluations, context)
        return self.single(evaluations[0], context) if evaluations else self.refused(context)

    def evaluate(self, options: FormOptions) -> list[Evaluation]:
        """The evaluations. Empty if the query has problems, which the form shows."""
        if self.query.problems:
            return []
        try:
            self.snapshots = load_shown_snapshots(self.caller, self.query, options)
            evaluations = evaluate_columns(self.query, get_engine_snapshots(self.snapshots), timezone.now())
        except ValidationError as error:
            self.query.problems.extend(error.details)
            return []
        if self.request.GET and not self.request.session.get("evaluated"):
            self.request.session["evaluated"] = True  # hides the hint on the start page
        return evaluations

    def single(self, evaluation: Evaluation, context: dict[str, Any]) -> HttpResponseBase:
        results = Results(evaluation, self.request.GET)
        if self.request.GET.get("format") == "csv":
            return make_csv_response(
                self.request,
                "playground",
                ["Flag", "Project", "Result", "Variant", "Why"],
                results.csv_rows(),
            )
        rows = [(row, results.reason(row)) for row in results.listing.rows]
        return self.shown(context, results=results, listing=results.listing, rows=rows)

    def several(self, evaluations: list[Evaluation], context: dict[str, Any]) -> HttpResponseBase:
        matrix = Matrix(evaluations, label_columns(self.query.columns), self.request.GET)
        if self.request.GET.get("format") == "csv":
            return make_csv_response(self.request, "playground", matrix.csv_header(), matrix.csv_rows())
        return self.shown(
            context,
            matrix=matrix,
            listing=matrix.listing,
            removals=list_removals(self.query, lambda query: self.url(query.pairs(), filtered=True)),
        )

    def refused(self, context: dict[str, Any]) -> HttpResponseBase:
        context["problems"] = self.query.problems
        return self.render_to_response(self.get_context_data(**context), status=400)

    def as_json(self, evaluations: list[Evaluation]) -> bytes:
        """The API's response to the equivalent request."""
        body = self.query.body()
        if self.query.several:
            fields = split_context(body["context"])
            environments, at = self.query.environments, self.query.at
            features = b"[%b]" % render_advanced_features(self.snapshots, environments, fields, at)
        else:
            features = render_features(self.snapshots[self.query.environments[0]], evaluations[0])
        return b'{"input":%b,"features":%b}' % (orjson.dumps(body), features)

    def compare_link(self) -> str:
        return (
            f"{reverse('playground-compare')}?{urlencode(join_sides({'a.': self.query, 'b.': self.query}))}"
        )

    def save_link(self) -> str:
        """The page that saves the context and leads back; "" if the caller may not save it."""
        back = {"next": self.url(self.query.pairs(), filtered=True)}
        page = reverse("saved-context-new")
        return f"{page}?{urlencode([*self.query.pairs(), *back.items()])}" if may_save(self.caller) else ""

    def get_curl(self) -> str:
        if self.query.problems:
            return ""
        return curl_for(self.request, "POST", PATHS[self.query.several], self.query.body())


class FlagPage(QueryPage):
    """One flag: its parents, and its strategies in order, with each condition and the context's value."""

    template_name = "playground/flag.html"

    def get_title(self) -> str:
        return self.kwargs["name"]

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (("Playground", f"{reverse('playground')}?{self.query.urlencode()}"),)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        options = read_form_options(self.caller)
        self.query = self.query_of(self.request.GET, options.default_environment)
        check_problems(self.query.problems)
        name, titles = self.kwargs["name"], read_strategy_titles()
        past = self.past(self.query)
        if self.query.at is None:
            current = read_shown_revisions(self.caller, self.query, options)
            alone = {
                environment: _compile_flag(current, environment, name)
                for environment in self.query.environments
            }
        else:
            alone = compile_flag_then(self.caller, *make_past_request(self.query), name)
        evaluations = evaluate_columns(self.query, alone, timezone.now())
        if name not in evaluations[0].snapshot.positions:
            raise NotFound(f"Active flag {name} not found in these projects.")
        limit = max(1, MAX_CONDITIONS // len(evaluations))
        first = evaluations[:MAX_COLUMNS]
        details = [FlagDetails(evaluation, titles, self.caller, limit).flag(name) for evaluation in first]
        return super().get_context_data(
            details=list(zip(label_columns(self.query.columns), details, strict=False)),
            several=self.query.several,
            more_columns=len(evaluations) - len(details),
            query=self.query,
            form=None
            if past or self.query.several or self.query.json is not None
            else make_form(self.query, options, used=find_used_fields(evaluations, options, flag=name)),
            flag_query=self.query.urlencode(),
            page="" if past and not _exists(details[0].project, name) else flag_url(details[0].project, name),
            past=past,
            **kwargs,
        )

    def get_curl(self) -> str:
        return curl_for(self.request, "POST", PATHS[self.query.several], self.query.body())


def _compile_flag(projects: Mapping[str, int], environment: str, flag: str) -> Snapshot:
    """The flag with its parents."""
    read = Stored(environment).read_few(projects, [flag])
    return compile_snapshot(read.flags, read.segments, environment=environment)


def _exists(project: str, flag: str) -> bool:
    return Flag.objects.filter(project=project, name=flag).exists()


def join_sides(sides: Mapping[str, PlaygroundQuery]) -> list[tuple[str, str]]:
    """The URL parameters of two queries. Projects that both contain are listed once."""
    return list(dict.fromkeys(pair for prefix, query in sides.items() for pair in query.pairs(prefix)))


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
        """The queries of both sides. By default, they differ in the environment. Parameters without a side apply to
        both.
        """
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
