"""/playground/who-changes/: two states to compare, and how many users get a different result, which, and why."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from flagadmin.core.errors import NotFound, Problem, ValidationError
from flagadmin.core.http.error_responses import problems_of
from flagadmin.core.lists.pages import curl_for, make_csv_response
from groups.console import ConsolePage
from playground.comparison.contexts import generate_contexts
from playground.comparison.given_contexts import MAX_GENERATED, read_fixed_fields
from playground.comparison.request import CompareBody, Question, read_question
from playground.comparison.states import StatePair, list_state_choices, split_choice
from playground.comparison.who_changes import Budget, WhoChanges, choose_number_of_users
from playground.engine.context import Context
from playground.models import OwnUsers, SavedContext
from playground.pages.changes import Changes
from playground.pages.form import MAX_OFFERED, ContextForm, FormOptions, make_form, read_form_options
from playground.pages.lines import Explain, explain_by, explain_in, make_context_pairs
from playground.pages.query import (
    KEPT,
    MAX_LENGTH_IN_URL,
    PlaygroundQuery,
    add_offset,
    format_local_time,
    keep,
    read_time,
    restore_kept,
)
from playground.user_runs.file import find_own_users, make_own_contexts
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
        """Compares all flags, or the chosen one, for the same contexts. Raises NotFound, ValidationError."""
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
        """The default number of users."""
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
        """The URL of a context's results in both states, one of which is in the past."""
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


USERS, RULES, JSON, SAVED, OWN = "users", "rules", "json", "saved", "own"
KINDS = {
    OWN: "Your users",
    USERS: "Generated users",
    RULES: "Edge cases",
    SAVED: "Saved contexts",
    JSON: "JSON",
}
MAX_LENGTH_SHOWN = 50_000
"""Characters of JSON that the form shows again. A longer text is kept, and replaced by pasting."""
PLACES = {
    "from.at": "From, at",
    "to.at": "To, at",
    "contexts.synthetic": "Users",
    "contexts.seed": "Seed",
    "contexts.fixed": "All have",
    "contexts.saved": "Saved contexts",
}


@dataclass(slots=True)
class WhoForm:
    """The form as sent. `users`, `seed`, `fixed` and the moments are as entered, "" if not; no moment means now.

    `before` and `after` are environments, or other states (`playground.comparison.states.list_state_choices`).
    """

    before: str
    after: str
    before_at: str
    after_at: str
    projects: list[str]
    flag: str
    kind: str
    users: str
    seed: str
    fixed: str
    saved: list[str]
    json: str
    kept: str = ""
    own: OwnUsers | None = None
    problems: list[Problem] = field(default_factory=list)

    @classmethod
    def read(cls, parameters: QueryDict, options: FormOptions, own: OwnUsers | None = None) -> "WhoForm":
        """``own`` are the users that the caller keeps, which are compared by default."""
        default = options.default_environment
        other = next((name for name in options.environments if name != default), default)
        default_kind = OWN if own else USERS
        kind = parameters.get("for", default_kind)
        if kind not in KINDS or (kind == OWN and not own):
            kind = default_kind
        return cls(
            before=parameters.get("from", default),
            after=parameters.get("to", other),
            before_at=read_time(parameters, "from-at"),
            after_at=read_time(parameters, "to-at"),
            projects=list(dict.fromkeys(filter(None, parameters.getlist("project")))),
            flag=parameters.get("flag", "").strip(),
            kind=kind,
            own=own,
            users=parameters.get("users", "").strip(),
            seed=parameters.get("seed", "").strip(),
            fixed=parameters.get("fixed", "").strip(),
            saved=list(dict.fromkeys(filter(None, parameters.getlist("saved")))),
            json=parameters.get("json", ""),
            kept=parameters.get(KEPT, ""),
        )

    def keep_if_long(self, caller: Any) -> None:
        if len(self.json) > MAX_LENGTH_IN_URL:
            self.kept = keep(_encode(self.json), caller)

    def pairs(self, *, swapped: bool = False) -> list[tuple[str, str]]:
        """The form as URL parameters, without those that the chosen contexts do not use."""
        sides = [(self.before, self.before_at), (self.after, self.after_at)]
        pairs = []
        for side, (environment, at) in zip(("from", "to"), sides[::-1] if swapped else sides, strict=True):
            pairs += [(side, environment), (f"{side}-at", at)]
        pairs += [*(("project", name) for name in self.projects), ("flag", self.flag), ("for", self.kind)]
        if self.kind == USERS:
            pairs += [("users", self.users), ("seed", self.seed), ("fixed", self.fixed)]
        elif self.kind == SAVED:
            pairs += [("saved", name) for name in self.saved]
        elif self.kind == JSON:
            pairs.append((KEPT, self.kept) if self.kept else ("json", self.json))
        return [(name, text) for name, text in pairs if text]

    @property
    def times(self) -> list[str]:
        """The moments as a browser's time inputs take them."""
        return [format_local_time(add_offset(at)) or at for at in (self.before_at, self.after_at)]

    @property
    def has_more(self) -> bool:
        """Whether it uses the less common fields."""
        return bool(
            self.before_at or self.after_at or self.projects or self.users or self.seed or self.fixed
            or self.problems
        )  # fmt: skip

    @property
    def is_long(self) -> bool:
        return len(self.json) > MAX_LENGTH_SHOWN

    @property
    def kinds(self) -> list[tuple[str, str, bool]]:
        kinds = KINDS | ({OWN: f"Users of {self.own.file_name}"} if self.own else {})
        return [(value, kinds[value], value == self.kind) for value in kinds if value != OWN or self.own]

    def body(self, *, users: int, saved: list[str]) -> dict[str, Any]:
        """The body of the same request to the API. ``users``, ``saved``: defaults for missing values."""
        return {
            "from": _make_state(self.before, self.before_at),
            "to": _make_state(self.after, self.after_at),
            **({"projects": self.projects} if self.projects else {}),
            **({"flag": self.flag} if self.flag else {}),
            "contexts": self._make_contexts(users, saved),
        }

    def _make_contexts(self, users: int, saved: list[str]) -> dict[str, Any]:
        if self.kind == OWN and self.own:
            return {"explicit": [{"properties": each.fields} for each in make_own_contexts(self.own, users)]}
        if self.kind == RULES:
            return {"generated": True}
        if self.kind == SAVED:
            return {"saved": self.saved or saved}
        if self.kind == JSON:
            return {"explicit": self._list_explicit()}
        return {
            "synthetic": self.users or users,
            "fixed": dict(self._split_fixed_fields()),
            **({"seed": self.seed} if self.seed else {}),
        }

    def _split_fixed_fields(self) -> Iterator[tuple[str, str]]:
        """Yields the names and values of, for example, `country=DE, plan=pro`."""
        for pair in filter(None, map(str.strip, self.fixed.split(","))):
            name, equals, value = map(str.strip, pair.partition("="))
            if not (name and equals):
                problem = f"must be like country=DE, plan=pro, not {pair[:100]}"
                self.problems.append(Problem("contexts.fixed", problem))
            yield name, value

    def _list_explicit(self) -> Any:
        if not self.json:
            missing = "The contexts of this link are no longer stored. Paste them again."
            self.problems.append(Problem("", missing if self.kept else "Paste a list of contexts as JSON."))
            return []
        try:
            read = orjson.loads(self.json)
        except orjson.JSONDecodeError as error:
            message = f"Invalid JSON (line {error.lineno}, column {error.colno}): {error.msg}."
            self.problems.append(Problem("", message))
            return []
        return [read] if isinstance(read, dict) else read

    def _name_state(self, path: str) -> str:
        """The form's label of the chosen state; other paths are for users who pasted JSON."""
        chosen = {"from": ("From", self.before), "to": ("To", self.after)}
        for side, (label, state) in chosen.items():
            if path in (f"{side}.environment", f"{side}.{split_choice(state)[0]}"):
                return label
        return path.replace("contexts.explicit", "JSON")

    @property
    def messages(self) -> Iterator[str]:
        for problem in self.problems:
            label = PLACES.get(problem.path) or self._name_state(problem.path)
            yield f"{label}: {problem.message}" if label else problem.message


def _make_state(chosen: str, at: str) -> dict[str, str]:
    member, value = split_choice(chosen)
    return {member: value} | ({"at": at} if at else {})


def _encode(text: str) -> str:
    encoded = QueryDict(mutable=True)
    encoded["json"] = text
    return encoded.urlencode()
