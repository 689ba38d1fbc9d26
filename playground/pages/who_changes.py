"""/playground/who-changes/: how many users get a different result in another state of the flags, which, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from flagadmin.core.errors import NotFound, Problem, ValidationError
from flagadmin.core.http.error_responses import problems_of
from flagadmin.core.lists.pages import curl_for, make_csv_response
from groups.console import ConsolePage
from playground.comparison.budget import Budget
from playground.comparison.contexts import generate_contexts
from playground.comparison.given_contexts import MAX_GENERATED, read_fixed_fields
from playground.comparison.kinds import list_state_choices
from playground.comparison.request import CompareBody, Question, read_question
from playground.comparison.states import StatePair
from playground.comparison.who_changes import WhoChanges, choose_number_of_users
from playground.engine.context import Context
from playground.models import SavedContext
from playground.pages.changes import Changes
from playground.pages.form import ContextForm, FormOptions, make_form, read_form_options
from playground.pages.kept_contexts import restore_kept
from playground.pages.lines import Explain, explain_by, explain_in, make_context_pairs
from playground.pages.query import PlaygroundQuery
from playground.pages.saved import MAX_OFFERED
from playground.pages.who_form import OWN, USERS, WhoForm
from playground.user_runs.own_users import find_own_users
from projects.console import flag_url
from projects.models import Flag

FOR_PAGE = Budget(advice="Choose a flag, or fewer users.")


class WhoChangesPage(ConsolePage):
    """The form uses POST, for contexts of any length, and redirects to a URL for the results."""

    template_name = "playground/who_changes.html"
    restores = True
    title = "Who changes"
    notes: Sequence[str] = ()

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        form = WhoForm.read(request.POST, read_form_options(self.caller), find_own_users(self.caller))
        if form.json:
            form.kept = ""
        form.keep_if_long(self.caller)
        return HttpResponseRedirect(f"{request.path}?{urlencode(form.pairs())}")

    @property
    def is_asked(self) -> bool:
        return bool({"from", "flag"} & self.request.GET.keys())

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        options = read_form_options(self.caller)
        self.form = WhoForm.read(restore_kept(request.GET), options, find_own_users(self.caller))
        saved = list(
            SavedContext.objects.readable_by(self.caller).values_list("name", flat=True)[:MAX_OFFERED]
        )
        changes = self.changes(options, saved) if self.is_asked else None
        if changes and request.GET.get("format") == "csv":
            return make_csv_response(self.request, "who-changes", changes.csv_header(), changes.csv_rows())
        page = self.render_to_response(
            self.get_context_data(
                form=self.form,
                environments=options.environments,
                api_limit=settings.COMPARE_BODY_LIMIT // 1_000_000,
                states=list_state_choices(self.caller),
                project_form=self.project_form(options),
                saved=[(name, name in self.form.saved) for name in saved],
                swap=f"?{urlencode(self.form.pairs(swapped=True))}",
                changes=changes,
                notes=self.notes,
                yesterday=self.since_yesterday(options),
                listing=changes.listing if changes else None,
                link=request.build_absolute_uri(),
                flag_page=flag_url(changes.only.project, changes.only.name)
                if changes and changes.only
                else "",
            ),
            status=400 if self.form.problems else 200,
        )
        assert isinstance(page, TemplateResponse)
        page.render().context_data = None  # the results are not kept
        return page

    def changes(self, options: FormOptions, saved: list[str]) -> Changes | None:
        """The comparison; None if the form has problems, which it then lists."""
        self.body = self.form.body(users=self.users(options), saved=saved)
        if self.form.problems:
            return None
        serializer = CompareBody(data=self.body)
        if not serializer.is_valid():
            self.form.problems.extend(problems_of(serializer.errors))
            return None
        try:
            question = read_question(self.caller, serializer.validated_data, beside=tuple, budget=Budget())
            who = self.compare(question)
        except ValidationError as error:
            self.form.problems.extend(error.details or [Problem("", error.message)])
            return None
        self.notes = question.notes
        return Changes(
            who,
            self.request.GET,
            noun="user" if self.form.kind in (USERS, OWN) else "context",
            names=[context.name for context in question.saved],
            explain=self.explain(question.pair),
        )

    def compare(self, question: Question) -> WhoChanges:
        """All flags, or the one that is looked at, for the same contexts. Raises NotFound, ValidationError."""
        only, pair = self.request.GET.get("only", ""), question.pair
        if only and only not in question.names:
            raise NotFound(f"Flag {only} not found in these projects.")
        fixed = read_fixed_fields(self.body["contexts"].get("fixed", {}))

        def make_rare(flags: list[str]) -> Sequence[Context]:
            return generate_contexts(pair.read(flags), now=timezone.now(), limit=MAX_GENERATED, fixed=fixed)

        return WhoChanges(
            *pair.snapshots,
            replace(question.contexts, file_name=self.form.own.file_name)
            if self.form.kind == OWN and self.form.own
            else question.contexts,
            [only] if only else question.names,
            budget=FOR_PAGE,
            total=len(question.names),
            make_rare=make_rare if self.form.kind in (USERS, OWN) else None,
        )

    def project_form(self, options: FormOptions) -> ContextForm:
        query = PlaygroundQuery([self.form.before], self.form.projects or None, {})
        return make_form(query, options, used=())

    def since_yesterday(self, options: FormOptions) -> str:
        """The URL that compares the default environment with itself a day ago."""
        name, then = options.default_environment, timezone.now() - timedelta(days=1)
        return f"?{urlencode({'from': name, 'from-at': f'{then:%Y-%m-%dT%H:%M}', 'to': name})}"

    def users(self, options: FormOptions) -> int:
        """Returns how many users are compared if the form does not say."""
        if self.form.flag:
            return choose_number_of_users(1)
        projects = self.form.projects or [project for project, _ in options.projects]
        return choose_number_of_users(Flag.objects.active().filter(project_id__in=projects).count())

    def explain(self, pair: StatePair) -> Explain:
        form, urls = self.form, [state.url for state in pair.states if state.url]
        if urls:
            return explain_by(urls[-1])
        if form.before_at or form.after_at:
            return self.side_by_side
        return explain_in(dict.fromkeys((form.before, form.after)))

    def side_by_side(self, flag: str, context: Mapping[str, str]) -> str:
        """The URL of what a context gets in both states, of which one is in the past."""
        pairs = make_context_pairs(context)
        sides = {"a.": (self.form.before, self.form.before_at), "b.": (self.form.after, self.form.after_at)}
        query = [("q", flag), ("show", "all")]
        for prefix, (environment, at) in sides.items():
            both = [("environment", environment), *([("at", at)] if at else []), *pairs]
            query += [(prefix + name, text) for name, text in both]
        return f"{reverse('playground-compare')}?{urlencode(query)}" if pairs else ""

    def get_curl(self) -> str:
        if not self.is_asked or self.form.problems or self.form.kind == OWN:
            return ""
        return curl_for(self.request, "POST", "/api/admin/playground/compare", self.body)
