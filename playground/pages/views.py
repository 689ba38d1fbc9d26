"""The playground's pages: all flags for one context, one flag in detail, and a comparison of two queries."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Any
from urllib.parse import urlencode

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from flagadmin.core.errors import NotFound, ValidationError, check_problems
from flagadmin.core.lists.pages import curl_for, make_csv_response
from groups.access import Caller
from groups.console import Breadcrumbs, ConsolePage
from playground import combinations
from playground.comparison.past import compile_flag_then, describe_request, load_snapshots
from playground.comparison.states import Stored
from playground.engine.batch import list_constraints
from playground.engine.compilation import compile_snapshot
from playground.engine.context import Context
from playground.engine.evaluator import Evaluation, evaluate
from playground.engine.snapshot import Snapshot
from playground.pages.flag_detail import MAX_CONDITIONS, FlagDetails, read_strategy_titles
from playground.pages.form import FormOptions, make_form, read_form_options
from playground.pages.kept_contexts import keep_if_long, restore_kept
from playground.pages.matrix import Matrix
from playground.pages.query import PlaygroundQuery, label_columns, read_query
from playground.pages.removals import list_removals
from playground.pages.saved import fill_with_saved, offer_saved
from playground.pages.tables import Results
from playground.queries import read_readable_revisions, refuse_too_many, render_advanced_features
from playground.request import PlaygroundRequest
from playground.response.snapshot import ResponseSnapshot
from playground.response.writer import render_features
from playground.saved_contexts.actions import may_save
from playground.snapshot_cache import load_snapshot_at
from projects.access import describe_unknown_environment
from projects.console import flag_url
from projects.history.definitions_at import is_in_future
from projects.models import Flag

PATHS = {False: "/api/admin/playground", True: "/api/admin/playground/advanced"}
FILTERS = ("q", "result", "variant", "show", "sort", "page")  # parameters that are not part of the query
SEED = 0  # keeps random results the same across columns and reloads
MAX_COLUMNS = 20  # in the details of one flag
PAGES_MAY = 3  # times as many evaluations as an API request: a page writes out only some of them
OFFERED_FIELDS = 20  # undeclared fields that conditions read


def load_shown_snapshots(
    caller: Caller, query: PlaygroundQuery, options: FormOptions
) -> dict[str, ResponseSnapshot]:
    """Loads the flags to evaluate, by environment. Raises ValidationError."""
    if query.at is not None:
        return load_snapshots(caller, *make_past_request(query))[0]
    current = read_shown_revisions(caller, query, options)
    if query.several:
        refuse_too_many(
            current, environments=len(query.environments), contexts=len(query.contexts), limit=_limit()
        )
    return {name: load_snapshot_at(current, name) for name in query.environments}


def read_shown_revisions(caller: Caller, query: PlaygroundQuery, options: FormOptions) -> dict[str, int]:
    """The projects to evaluate now, with their revisions. Raises ValidationError."""
    for environment in query.environments:
        if environment not in options.environments:
            raise ValidationError.at("environment", describe_unknown_environment(environment))
    return read_readable_revisions(caller, query.projects)


def _limit() -> int:
    return settings.PLAYGROUND_MAX_EVALUATIONS * PAGES_MAY


def make_past_request(query: PlaygroundQuery) -> tuple[PlaygroundRequest, dict[str, str]]:
    """The query as a request to the past, and its environments by the paths of their problems."""
    request = PlaygroundRequest(query.environments, query.projects, {}, {}, query.at)
    return request, {f"environment {name}": name for name in query.environments}


def get_engine_snapshots(snapshots: Mapping[str, ResponseSnapshot]) -> dict[str, Snapshot]:
    return {environment: compiled.snapshot for environment, compiled in snapshots.items()}


def evaluate_columns(
    query: PlaygroundQuery, snapshots: Mapping[str, Snapshot], now: datetime
) -> list[Evaluation]:
    """One evaluation for each environment and context. Raises ValidationError if there are too many."""
    combinations.check_size(
        environments=len(snapshots),
        flags=max(len(snapshot.flags) for snapshot in snapshots.values()),
        contexts=len(query.contexts),
        limit=_limit(),
    )
    return [
        evaluate(
            snapshots[environment], Context(context), now=query.at or now, random=random.Random(SEED).random
        )
        for environment, context in query.columns
    ]


def find_used_fields(evaluations: Sequence[Evaluation], options: FormOptions, *, flag: str = "") -> set[str]:
    """The fields that conditions read, with OFFERED_FIELDS undeclared ones at most: those of the ``flag`` if there is
    one of this name, else of all flags.

    Without evaluations, all declared fields.
    """
    if not evaluations:
        return {field.name for field in options.fields}
    fields = {name for evaluation in evaluations for name in _list_fields(evaluation.snapshot, flag)}
    if "default" in fields:  # the default stickiness is userId or, without one, sessionId
        fields.add("sessionId")
    declared = {field.name for field in options.fields}
    undeclared = sorted(fields - declared - {"", "default", "random"})
    return (fields & declared) | set(undeclared[:OFFERED_FIELDS])


def _list_fields(snapshot: Snapshot, name: str) -> Iterable[str]:
    """The fields that a flag and its parents read; of all flags if there is none of this name."""
    position = snapshot.positions.get(name)
    if position is None:
        return snapshot.columns.fields()
    flag = snapshot.flags[position]
    parents = (snapshot.positions.get(parent.name) for parent in flag.parents)
    flags = [flag, *(snapshot.flags[parent] for parent in parents if parent is not None)]
    fields = {each.variants.stickiness for each in flags if each.variants}
    for strategy in chain.from_iterable(each.strategies for each in flags):
        fields |= {constraint.field for constraint in list_constraints(strategy, snapshot.segments)}
        fields |= {part.stickiness for part in (strategy.rollout, strategy.variants) if part}
    return fields


class QueryPage(ConsolePage):
    """A page whose form uses POST, for contexts of any length, and redirects to a URL for the results."""

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
        """Returns what the page says about the query's moment in the past or future; empty for now."""
        if query.at is None or query.problems:
            return {}
        present = replace(query, at=None).urlencode()
        page = reverse("playground") if isinstance(self, ComparePage) else self.request.path
        return {
            "at": query.at,
            "is_ahead": is_in_future(query.at),
            "notes": describe_request(self.caller, *make_past_request(query)),
            "now": f"{page}?{present}",
        }

    def shown(self, context: dict[str, Any], **more: Any) -> HttpResponseBase:
        """The page, rendered at once; it does not keep the results."""
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
            fields = combinations.split_context(body["context"])
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
        """The page that saves the context and leads back; "" if the caller may not."""
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


class ComparePage(QueryPage):
    """Compares two queries. Shows only the flags that differ, unless all are requested."""

    template_name = "playground/compare.html"
    restores = True
    title = "Side by side"

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


def join_sides(sides: Mapping[str, PlaygroundQuery]) -> list[tuple[str, str]]:
    """The URL parameters of two queries. Projects that both contain are listed once."""
    return list(dict.fromkeys(pair for prefix, query in sides.items() for pair in query.pairs(prefix)))
