"""/projects/ID/features/NAME/why/: why one user has this answer of a flag, since when, and what would turn it on."""

import random
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone

from flagadmin.core.errors import ValidationError
from flagadmin.core.http.responses import iso
from groups.access import Permission
from playground.engine.context import Context
from playground.engine.definitions import FlagDefinition
from playground.engine.evaluator import evaluate
from playground.engine.explanation import explain
from playground.lens import Lens, Told, evaluate_for, find_lens, make_why_url, tell
from playground.pages.evaluations import list_fields
from playground.pages.flag_detail import MAX_CONDITIONS, FlagDetail, FlagDetails, read_strategy_titles
from playground.pages.query import flatten_context
from playground.saved_contexts.actions import may_change, may_save
from playground.saved_contexts.expectations import compile_flags, read_stored_flags
from projects.access import access_flag
from projects.console import OnFlagPage, flag_url
from projects.definitions import Definitions
from projects.flag_versions import FlagVersions
from projects.flags.lists.queries import list_environment_names
from projects.models import Environment
from releases.timeline.draw import measure_flag
from releases.timeline.view import SPANS, USUAL, read_at
from releases.why.path import Way, make_answer
from releases.why.when import may_read, read_when

MAX_FIELDS = 12
MAX_ENVIRONMENTS = 50


class WhyPage(OnFlagPage):
    """``?environment=`` (by default the first production environment of the project), ``?at=`` in the past, and
    ``?as=``, which chooses the lens. Without a lens the page asks for a user.
    """

    template_name = "why/why.html"
    http_method_names = ["get", "head"]
    api_call = "POST /api/admin/playground"
    lens: Lens | None = None
    detail: FlagDetail | None = None

    def find(self) -> None:
        self.flag = access_flag(self.caller, *self.place, archived=False)
        self.environments = list_environment_names(self.flag.project)
        asked = self.request.GET.get("environment", "")
        production = Environment.objects.production().filter(name__in=self.environments)
        usual = production.values_list("name", flat=True).first() or next(iter(self.environments), "")
        self.environment = asked if asked in self.environments else usual
        self.lens = find_lens(self.request, self.caller)
        span = self.request.GET.get("span", "")
        self.span = span if span in SPANS else USUAL
        at = read_at(self.request.GET)
        self.at = at if at and at < timezone.now() else None

    def get_title(self) -> str:
        name = self.kwargs["name"]
        if self.lens is None or self.detail is None:
            return f"Why does a user get {name}, or not?"
        states = {"on": "on", "off": "off", "random": "on for a share of calls"}
        verb = "was" if self.at else "is"
        return f"Why {verb} {name} {states.get(self.detail.result, 'unknown')} for {self.lens.name}?"

    def get_api_body(self) -> dict[str, Any]:
        context = self.lens.context if self.lens else {}
        at = {"at": iso(self.at)} if self.at else {}
        return {"environment": self.environment, "projects": [self.flag.project_id], "context": context, **at}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        why = self._explain(self.lens) if self.lens and self.environment else {}
        return super().get_context_data(
            flag=self.flag,
            crumb="Why?",
            environment=self.environment,
            lens=self.lens,
            url=flag_url(self.flag.project_id, self.flag.name),
            environments=[(name, self._ask_otherwise(environment=name)) for name in self.environments],
            at=self.at,
            **why,
            **kwargs,
        )

    def _explain(self, lens: Lens) -> dict[str, Any]:
        flag, environment, now = self.flag, self.environment, timezone.now()
        stored = read_stored_flags([flag.project_id], environment, {flag.name})
        at = self.at or now
        versions = FlagVersions([flag.pk], at)
        evaluation = evaluate(
            compile_flags(self._read_then(versions) if self.at else stored, environment),
            Context(lens.context),
            now=at,
            random=random.random,
        )
        details = FlagDetails(evaluation, read_strategy_titles(), self.caller, MAX_CONDITIONS)
        self.detail = details.flag(flag.name)
        compiled, _ = evaluation.pair(flag.name)
        parents = [parent.name for parent in compiled.parents if parent.name in evaluation.snapshot.positions]
        urls = self._link_steps(lens, parents)
        answer = make_answer(
            explain(evaluation, flag.name), self.detail, compiled.fault, urls, self._count_gained(stored)
        )
        given = list(flatten_context(lens.context).items())
        used = {*list_fields(evaluation.snapshot, flag.name)}
        used |= {"userId", "sessionId"} if "default" in used else set()
        return {
            "detail": self.detail,
            "answer": answer,
            "by_name": self._name_user(lens) if answer.ways else None,
            "when": read_when(lens, flag, environment, stored, span=self.span, now=now, caller=self.caller),
            "segments": [
                (label, self._ask_otherwise(span=key), None, key == self.span)
                for key, (label, _) in SPANS.items()
            ],
            "fields": [field for field in given if field[0] in used][:MAX_FIELDS],
            "unread": [field for field in given if field[0] not in used][:MAX_FIELDS],
            "elsewhere": list(self._list_elsewhere(lens, versions, at)),
            "link": self.request.build_absolute_uri(self._ask_otherwise(**{"as": lens.key})),
            "trace": self._link("playground-flag", lens, flag.name),
            "expect": self._link_expectation(lens),
            "save_context": self._link_saving(lens),
        }

    def _read_then(self, versions: FlagVersions) -> Definitions:
        """The flag at that moment. Raises ValidationError if it was not there, or not for the caller."""
        assert self.at is not None
        read = versions.read([self.flag.pk], self.environment, self.at)
        is_known = versions.known_since <= self.at and self.flag.name in read.by_name()
        if not is_known or not may_read(self.flag, read, self.caller):
            name = self.flag.name
            raise ValidationError(f"{name} was not in this project then, or flagadmin kept no versions yet.")
        return read

    def _list_elsewhere(
        self, lens: Lens, versions: FlagVersions, at: datetime
    ) -> Iterator[tuple[str, Told, str]]:
        """The other environments, with answers and reasons. As many queries for one as for many."""
        flag = self.flag
        for environment in self.environments[:MAX_ENVIRONMENTS]:
            read = versions.read([flag.pk], environment, at)
            if environment == self.environment or flag.name not in read.by_name():
                continue
            place, context = (flag.project_id, environment, flag.name), Context(lens.context)
            [shares] = evaluate_for(lens, read, environment, [place], at)
            evaluation = evaluate(compile_flags(read, environment), context, now=at, random=random.random)
            yield environment, tell(shares, lens, place), explain(evaluation, flag.name).reason

    def _name_user(self, lens: Lens) -> Way | None:
        """A strategy for this user alone; None for users without an id, or if the caller may not add it."""
        flag, user = self.flag, str(lens.context.get("userId") or "")
        permission, place = Permission.CREATE_FEATURE_STRATEGY, {"environment": self.environment}
        if not user or not self.caller.can(permission, project=flag.project_id, **place):
            return None
        query = urlencode({"environmentId": self.environment, "userId": user})
        url = f"{flag_url(flag.project_id, flag.name, 'strategy-new')}?{query}"
        return Way(f"userId {user} by name", "Adds a strategy for one user", url, "Add…", f"userId {user}")

    def _link_steps(self, lens: Lens, parents: Iterable[str]) -> dict[str, str]:
        """By the name of each parent why it has its answer; under "" the page that switches the flag on."""
        flag, environment = self.flag, self.environment
        urls = {name: make_why_url(lens, (flag.project_id, environment, name)) for name in parents}
        permission = Permission.UPDATE_FEATURE_ENVIRONMENT
        if self.caller.can(permission, project=flag.project_id, environment=environment):
            query = {"environment": environment, "enabled": "on", "next": self.request.get_full_path()}
            urls[""] = f"{flag_url(flag.project_id, flag.name, 'flag-toggle')}?{urlencode(query)}"
        return urls

    def _count_gained(self, stored: Definitions) -> Callable[[int, int], float]:
        """How many more percent of all users have the flag, by the index and the new rollout of a strategy."""
        definition = stored.by_name()[self.flag.name]

        def measure(index: int, rollout: int) -> float:
            strategies: Any = [*definition["strategies"]]
            parameters = {**strategies[index]["parameters"], "rollout": str(rollout)}
            strategies[index] = {**strategies[index], "parameters": parameters}
            raised: FlagDefinition = {**definition, "strategies": strategies}
            flags = [raised if each is definition else each for each in stored.flags]
            now = measure_flag(self.environment, stored, definition)
            return measure_flag(self.environment, Definitions(flags, stored.segments), raised).on - now.on

        return measure

    def _ask_otherwise(self, **query: str) -> str:
        at = {"at": iso(self.at)} if self.at else {}
        return f"?{urlencode({'environment': self.environment, 'span': self.span, **at, **query})}"

    def _ask(self, lens: Lens) -> dict[str, str]:
        return {"project": self.flag.project_id, "environment": self.environment, **lens.query}

    def _link(self, page: str, lens: Lens, *args: str, **more: str) -> str:
        return f"{reverse(page, args=args)}?{urlencode({**self._ask(lens), **more})}"

    def _link_expectation(self, lens: Lens) -> str:
        """The form of a new expectation of the saved context, without ``enabled``; "" if there is none."""
        if lens.saved is None or not may_change(self.caller, lens.saved.project_id):
            return ""
        about = {"saved_context": lens.saved.pk, "flag": self.flag.name, "environment": self.environment}
        back = {"next": self.request.get_full_path()}
        return f"{reverse('expectation-new')}?{urlencode({**about, **back})}"

    def _link_saving(self, lens: Lens) -> str:
        """The form that saves the user as a context; "" if it is saved, or the caller may not."""
        if lens.saved is not None or not may_save(self.caller):
            return ""
        return self._link("saved-context-new", lens, next=self.request.get_full_path())
