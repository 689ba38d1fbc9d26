"""The playground's pages: all flags for one context, one flag taken apart, two contexts side by side."""

import random
from collections.abc import Mapping, Sequence
from datetime import datetime
from time import perf_counter
from typing import Any
from urllib.parse import urlencode

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils import timezone

from flagadmin.console.lists import csv_response, curl_for
from flagadmin.errors import NotFound, ValidationError
from groups.access import Caller
from groups.console import ConsolePage, Crumbs
from playground import combinations
from playground.api import advanced_features, readable_revisions
from playground.engine.context import Context
from playground.engine.evaluator import Evaluation, evaluate
from playground.engine.snapshot import Snapshot
from playground.pages.flag_detail import FEW_CONDITIONS, MOST_CONDITIONS, Panels, strategy_titles
from playground.pages.form import Known, make_form, read_known
from playground.pages.kept_contexts import keep_if_long, with_kept
from playground.pages.query import Asked, labels, read_asked
from playground.pages.tables import Matrix, Results
from playground.response.snapshot import ResponseSnapshot
from playground.response.writer import render_features
from playground.snapshot_cache import snapshot_at
from projects.access import unknown_environment
from projects.console import flag_url

PATHS = {False: "/api/admin/playground", True: "/api/admin/playground/advanced"}
FILTERS = ("q", "result", "variant", "show", "sort", "page")  # what a URL has besides the question
SEED = 0  # what is drawn is drawn alike for every column and at every reload; results tell its share of calls
MOST_COLUMNS = 20  # of one flag taken apart
OFFERED_FIELDS = 20  # that conditions read and nobody has declared


def snapshots_for(caller: Caller, asked: Asked, known: Known) -> dict[str, ResponseSnapshot]:
    """The flags asked for, by environment. Raises ValidationError."""
    for environment in asked.environments:
        if environment not in known.environments:
            raise ValidationError.at("environment", unknown_environment(environment))
    current = readable_revisions(caller, asked.projects)
    return {name: snapshot_at(current, name) for name in asked.environments}


def engine_snapshots(snapshots: Mapping[str, ResponseSnapshot]) -> dict[str, Snapshot]:
    return {environment: compiled.snapshot for environment, compiled in snapshots.items()}


def evaluate_columns(asked: Asked, snapshots: Mapping[str, Snapshot], now: datetime) -> list[Evaluation]:
    """One evaluation for each environment and context. Raises ValidationError if there is too much to evaluate."""
    combinations.check_size(
        environments=len(snapshots),
        flags=max(len(snapshot.flags) for snapshot in snapshots.values()),
        contexts=len(asked.contexts),
        limit=settings.PLAYGROUND_MAX_EVALUATIONS,
    )
    return [
        evaluate(snapshots[environment], Context(context), now=now, random=random.Random(SEED).random)
        for environment, context in asked.columns
    ]


def used_fields(evaluations: Sequence[Evaluation], known: Known) -> set[str]:
    """The fields that conditions read: all the declared ones, and some of the others. All where that is not known."""
    if not evaluations:
        return {field.name for field in known.fields}
    fields = {name for evaluation in evaluations for name in evaluation.snapshot.columns.fields()}
    if "default" in fields:  # the stickiness: userId, and without one sessionId
        fields.add("sessionId")
    declared = {field.name for field in known.fields}
    undeclared = sorted(fields - declared - {"", "default", "random"})
    return (fields & declared) | set(undeclared[:OFFERED_FIELDS])


class QuestionPage(ConsolePage):
    """A page whose form is posted, so that a context of any length arrives, and whose results have a URL."""

    def asked_of(self, given: QueryDict, environment: str, prefix: str = "") -> Asked:
        return read_asked(with_kept(given, prefix), default_environment=environment, prefix=prefix)

    def url(self, pairs: Sequence[tuple[str, str]], *, filtered: bool = False) -> str:
        """The URL of a question, with the filters of the present one where they are to be kept."""
        kept = [(name, self.request.GET[name]) for name in FILTERS if name in self.request.GET]
        return f"{self.request.path}?{urlencode([*pairs, *(kept if filtered else [])])}"


class PlaygroundPage(QuestionPage):
    template_name = "playground/playground.html"
    restores = True
    title = "Playground"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        asked = self.asked_of(request.POST, read_known(self.caller).default_environment)
        keep_if_long(asked, self.caller)
        return HttpResponseRedirect(self.url(asked.pairs()))

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        known = read_known(self.caller)
        self.asked = self.asked_of(request.GET, known.default_environment)
        started = perf_counter()
        evaluations = self.evaluate(known)
        if evaluations and request.GET.get("format") == "json":
            return HttpResponse(self.as_json(evaluations), content_type="application/json")
        context: dict[str, Any] = {
            "asked": self.asked,
            "form": make_form(self.asked, known, used=used_fields(evaluations, known)),
            "several_projects": len(self.asked.projects or known.projects) > 1,
            "link": request.build_absolute_uri(self.url(self.asked.pairs(), filtered=True)),
            "compare": self.compare_link(),
            "flag_query": self.asked.query(),
            "milliseconds": (perf_counter() - started) * 1000,
        }
        if self.asked.several and evaluations:
            return self.several(evaluations, context)
        return self.single(evaluations[0], context) if evaluations else self.refused(context)

    def evaluate(self, known: Known) -> list[Evaluation]:
        """Nothing where something is wrong; that stands beside the fields then."""
        if self.asked.problems:
            return []
        try:
            self.snapshots = snapshots_for(self.caller, self.asked, known)
            evaluations = evaluate_columns(self.asked, engine_snapshots(self.snapshots), timezone.now())
        except ValidationError as error:
            self.asked.problems.extend(error.details)
            return []
        if self.request.GET and not self.request.session.get("evaluated"):
            self.request.session["evaluated"] = True  # the start page says no longer "Start here"
        return evaluations

    def single(self, evaluation: Evaluation, context: dict[str, Any]) -> HttpResponseBase:
        results = Results(evaluation, self.request.GET)
        if self.request.GET.get("format") == "csv":
            return csv_response(
                "playground", ["Flag", "Project", "Result", "Variant", "Why"], results.csv_rows()
            )
        panels = Panels(evaluation, strategy_titles(), self.caller, FEW_CONDITIONS)
        rows = [(row, panels.flag(row.name)) for row in results.listing.rows]
        return self.shown(context, results=results, listing=results.listing, rows=rows)

    def several(self, evaluations: list[Evaluation], context: dict[str, Any]) -> HttpResponseBase:
        matrix = Matrix(evaluations, labels(self.asked.columns), self.request.GET)
        if self.request.GET.get("format") == "csv":
            return csv_response("playground", matrix.csv_header(), matrix.csv_rows())
        return self.shown(context, matrix=matrix, listing=matrix.listing)

    def refused(self, context: dict[str, Any]) -> HttpResponseBase:
        return self.render_to_response(self.get_context_data(**context), status=400)

    def shown(self, context: dict[str, Any], **more: Any) -> HttpResponseBase:
        return self.render_to_response(self.get_context_data(**context, **more))

    def as_json(self, evaluations: list[Evaluation]) -> bytes:
        """What the API answers to the same question."""
        body = self.asked.body()
        if self.asked.several:
            current = readable_revisions(self.caller, self.asked.projects)
            fields = combinations.split_context(body["context"])
            features = b"[%b]" % advanced_features(current, self.asked.environments, fields)
        else:
            features = render_features(self.snapshots[self.asked.environments[0]], evaluations[0])
        return b'{"input":%b,"features":%b}' % (orjson.dumps(body), features)

    def compare_link(self) -> str:
        return f"{reverse('playground-compare')}?{urlencode(both({'a.': self.asked, 'b.': self.asked}))}"

    def curl(self) -> str:
        if self.asked.problems:
            return ""
        return curl_for(self.request, "POST", PATHS[self.asked.several], self.asked.body())


class FlagPage(QuestionPage):
    """One flag: its parents, its strategies in order, each condition with the value that was sent."""

    template_name = "playground/flag.html"

    def get_title(self) -> str:
        return self.kwargs["name"]

    def crumbs(self) -> Crumbs:
        return (("Playground", f"{reverse('playground')}?{self.asked.query()}"),)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        known = read_known(self.caller)
        self.asked = self.asked_of(self.request.GET, known.default_environment)
        if self.asked.problems:
            raise ValidationError.of(self.asked.problems)
        name, titles = self.kwargs["name"], strategy_titles()
        snapshots = engine_snapshots(snapshots_for(self.caller, self.asked, known))
        alone = {environment: snapshot.only(name) for environment, snapshot in snapshots.items()}
        evaluations = evaluate_columns(self.asked, alone, timezone.now())
        if name not in evaluations[0].snapshot.positions:
            raise NotFound(f"There is no active flag {name} among these projects.")
        most = max(1, MOST_CONDITIONS // len(evaluations))
        shown = evaluations[:MOST_COLUMNS]
        panels = [Panels(evaluation, titles, self.caller, most).flag(name) for evaluation in shown]
        return super().get_context_data(
            panels=list(zip(labels(self.asked.columns)[: len(panels)], panels, strict=True)),
            several=self.asked.several,
            more_columns=len(evaluations) - len(panels),
            query=self.asked.query(),
            asked=self.asked,
            page=flag_url(panels[0].project, name),
            **kwargs,
        )

    def curl(self) -> str:
        return curl_for(self.request, "POST", PATHS[self.asked.several], self.asked.body())


class ComparePage(QuestionPage):
    """Two questions side by side: only where they differ, unless asked for all."""

    template_name = "playground/compare.html"
    restores = True
    title = "Compare"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        sides = self.sides(request.POST, read_known(self.caller))
        for asked in sides.values():
            keep_if_long(asked, self.caller)
        return HttpResponseRedirect(self.url(both(sides)))

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        known = read_known(self.caller)
        sides = self.sides(request.GET, known)
        evaluations = self.evaluate(sides, known)
        context: dict[str, Any] = {
            "forms": [
                make_form(asked, known, used=used_fields(evaluations, known), prefix=prefix)
                for prefix, asked in sides.items()
            ],
            "swap": self.url(both({"a.": sides["b."], "b.": sides["a."]}), filtered=True),
            "curl": "\n".join(
                curl_for(request, "POST", PATHS[asked.several], asked.body()) for asked in sides.values()
            ),
            "link": request.build_absolute_uri(self.url(both(sides), filtered=True)),
        }
        if not evaluations:
            return self.render_to_response(self.get_context_data(**context), status=400)
        columns = [column for asked in sides.values() for column in asked.columns]
        matrix = Matrix(evaluations, labels(columns), request.GET, only_differences=True)
        if request.GET.get("format") == "csv":
            return csv_response("compare", matrix.csv_header(), matrix.csv_rows())
        return self.render_to_response(
            self.get_context_data(
                **context, matrix=matrix, listing=matrix.listing, flag_query=sides["a."].query()
            )
        )

    def sides(self, given: QueryDict, known: Known) -> dict[str, Asked]:
        """Both questions; untouched, they ask for two environments."""
        others = [name for name in known.environments if name != known.default_environment]
        defaults = {"a.": (others or [known.default_environment])[0], "b.": known.default_environment}
        return {prefix: self.asked_of(given, environment, prefix) for prefix, environment in defaults.items()}

    def evaluate(self, sides: dict[str, Asked], known: Known) -> list[Evaluation]:
        found: list[Evaluation] = []
        now = timezone.now()
        for asked in sides.values():
            if not asked.problems:
                try:
                    snapshots = engine_snapshots(snapshots_for(self.caller, asked, known))
                    found += evaluate_columns(asked, snapshots, now)
                except ValidationError as error:
                    asked.problems.extend(error.details)
        return [] if any(asked.problems for asked in sides.values()) else found


def both(sides: Mapping[str, Asked]) -> list[tuple[str, str]]:
    """The parameters of two questions; the projects they have in common once."""
    return list(dict.fromkeys(pair for prefix, asked in sides.items() for pair in asked.pairs(prefix)))
