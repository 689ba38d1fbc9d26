"""/projects/ID/connect/: a token, a program to paste, and whether its first request has arrived.

The URL contains the choices: language, environment, flag, token (its id), and the start of the wait.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count, groupby
from operator import attrgetter
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.http import urlencode

from flagadmin.core.errors import NotFound
from flagadmin.core.http.fields import read_id
from groups.console import Caller, ConsolePage, FormPage, Permission
from groups.models import ApiToken
from groups.one_time_secrets import ShowsSecretOnce
from projects.access import access_project
from projects.connect.queries import (
    MAX_TOKENS,
    Attempt,
    connected_applications,
    environments_of,
    find_connection,
    may_create_token,
    refusal_words,
    usable_tokens,
    who_creates_tokens,
)
from projects.connect.snippets import OTHERS, Snippet, find_snippet, read_snippets, render
from projects.console import InProjectPage, flag_url, project_url
from projects.models import Flag, Project
from projects.tokens.access import find_permission
from projects.tokens.actions import NewToken, create_project_token, create_token

MAX_FLAGS = 100  # offered; any other can be named in the URL
MAX_PROJECTS = 100
MAX_WAIT = timedelta(days=1)
APPLICATION = "my-app"
FIRST_FLAG = "my-first-flag"  # the flag in programs for an empty project
USER = "42"  # in all programs


class ConnectAnywherePage(ConsolePage):
    """/connect/: asks for the project, unless there is only one."""

    template_name = "connect/projects.html"
    title = "Connect an SDK"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        projects = Project.objects.active().readable_by(self.caller).order_by("name", "id")
        offered = list(projects[:MAX_PROJECTS])
        if len(offered) == 1:
            return HttpResponseRedirect(project_url(offered[0].pk, "connect"))
        return self.render_to_response(self.get_context_data(projects=offered))


class Choices(ConsolePage):
    """The choices in the URL of both pages."""

    @cached_property
    def project(self) -> Project:
        project = access_project(self.caller, self.kwargs["project_id"])
        if project.archived_at is not None:
            raise NotFound(f"Project {project.pk} is archived. Revive it first.")
        return project

    @cached_property
    def chosen(self) -> Any:
        return self.request.POST if self.request.method == "POST" else self.request.GET

    @cached_property
    def snippet(self) -> Snippet:
        return find_snippet(self.chosen.get("language", ""))

    @cached_property
    def environments(self) -> list[str]:
        return environments_of(self.project)

    @cached_property
    def environment(self) -> str:
        name = self.chosen.get("environment", "")
        return name if name in self.environments else next(iter(self.environments), "")

    @cached_property
    def flags(self) -> Sequence[str]:
        """The names to choose from: the newest flags, and the chosen one."""
        flags = Flag.objects.active().filter(project=self.project)
        names = list(flags.order_by("-created_at", "name").values_list("name", flat=True)[:MAX_FLAGS])
        name = self.chosen.get("flag", "")
        if name not in names and flags.filter(name=name).exists():
            names.append(name)
        return names

    @cached_property
    def flag(self) -> str:
        name = self.chosen.get("flag", "")
        return name if name in self.flags else next(iter(self.flags), "")

    @cached_property
    def tokens(self) -> Any:
        return usable_tokens(self.caller, self.project, self.environment, self.snippet.kind)

    @cached_property
    def token(self) -> ApiToken | None:
        """The chosen token, if it fits the language and the environment."""
        key = read_id(self.chosen.get("token", ""))
        return None if key is None else self.tokens.filter(pk=key).first()

    @cached_property
    def since(self) -> datetime:
        """The start of the wait, in the URL in milliseconds: not before yesterday."""
        now, text = timezone.now(), self.chosen.get("since", "")
        is_time = text.isascii() and text.isdigit() and len(text) < 15
        seconds = int(text) / 1000 if is_time else now.timestamp()
        return datetime.fromtimestamp(min(max(seconds, (now - MAX_WAIT).timestamp()), now.timestamp()), UTC)

    @cached_property
    def may_create(self) -> bool:
        return may_create_token(self.caller, self.project.pk, self.snippet.kind)

    def query(self, **changes: str) -> dict[str, str]:
        values = {
            "language": self.snippet.key,
            "environment": self.environment,
            "flag": self.flag,
            "token": str(self.token.pk) if self.token else "",
            "since": str(int(self.since.timestamp() * 1000)),
        }
        return {name: value for name, value in (values | changes).items() if value}

    def address(self, page: str = "connect", **changes: str) -> str:
        return f"{project_url(self.project.pk, page)}?{urlencode(self.query(**changes))}"

    def live_context(self) -> dict[str, Any]:
        """The variables of ``connect/live.html``."""
        attempt = Attempt(self.project, self.environment, self.flag, self.token, self.since)
        connection = find_connection(attempt, caller=self.caller, may_create=self.may_create)
        # Once it has reported counts, there is nothing more to wait for.
        is_done = connection.is_connected and (connection.counts is not None or not self.snippet.registers)
        return {
            "project": self.project,
            "environment": self.environment,
            "flag": self.flag,
            "user": USER,
            "snippet": self.snippet,
            "server": self.request.build_absolute_uri("/").rstrip("/"),
            "token": self.token,
            "connection": connection,
            "refused_because": connection.refused and refusal_words(connection.refused),
            "poll": "" if is_done else self.address("connect-live", state=connection.state),
            "check_again": self.address(),
            "may_toggle": self._can(Permission.UPDATE_FEATURE_ENVIRONMENT),
            "may_roll_out": self._can(Permission.CREATE_FEATURE_STRATEGY),
            "toggle_url": self._of_flag("flag-toggle", environment=self.environment, enabled="on"),
            "roll_out_url": self._of_flag("strategy-new", environmentId=self.environment),
            "evaluate_url": f"{reverse('playground')}?"
            + urlencode({"environment": self.environment, "context.userId": USER, "q": self.flag}),
        }

    def _of_flag(self, page: str, **parameters: str) -> str:
        """A page of the flag, "" if the project has none."""
        return f"{flag_url(self.project.pk, self.flag, page)}?{urlencode(parameters)}" if self.flag else ""

    def _can(self, permission: Permission) -> bool:
        return self.caller.can(permission, project=self.project.pk, environment=self.environment)


class TokenForm(forms.Form):
    """All other choices are in the URL."""

    environment = forms.CharField()


class ConnectPage(InProjectPage, ShowsSecretOnce, Choices, FormPage):
    template_name = "connect/connect.html"
    title = "Connect an SDK"
    form_class = TokenForm
    secret = ""
    api_call = "POST /api/admin/api-tokens"

    def find(self) -> None:
        _ = self.project

    def submit(self, form: Any) -> str:
        """Creates a token for this project in this environment. Raises NoAccess, ValidationError."""
        new = NewToken(
            name=free_name(self.project, APPLICATION),
            kind=self.snippet.kind,
            projects=(self.project.pk,),
            environment=self.environment,
        )
        token, secret = make_token(new, self.caller)
        self.created = {"secret": secret}
        self.created_query = self.query(token=str(token.pk))
        return self.address()

    def show_secret(self, created: dict[str, str]) -> HttpResponseBase:
        self.prepare()
        self.secret = created["secret"]
        return self.render_to_response(self.get_context_data(form=self.get_form()))

    def already_shown(self) -> HttpResponseBase:
        self.prepare()
        return HttpResponseRedirect(self.address())

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        url = self.request.build_absolute_uri("/").rstrip("/")
        values = {"url": url, "flag": self.flag or FIRST_FLAG, "application": APPLICATION}
        reads_token = self.snippet.reads_token
        tabs = [
            (
                label,
                self.address(language=key, token=""),
                key == self.snippet.key or self._is_openfeature(label),
            )
            for label, key in self._languages()
        ]
        return super().get_context_data(
            **self.live_context(),
            secret=self.secret,
            tabs=tabs,
            variants=self._variants(),
            environments=[
                (name, self.address(environment=name, token=""), None, name == self.environment)
                for name in self.environments
            ],
            flags=self.flags,
            kept=[(name, value) for name, value in self.query().items() if name != "flag"],
            literal=render(self.snippet, **values, token=self.secret or "TOKEN"),
            variable=render(self.snippet, **values) if reads_token else "",
            may_create=self.may_create,
            permissions=[
                find_permission("CREATE", self.snippet.kind).display,
                Permission.CREATE_PROJECT_API_TOKEN.display,
            ],
            people=[] if self.may_create else who_creates_tokens(self.project),
            tokens=[
                (token, self.address(token=str(token.pk)))
                for token in self.tokens.exclude(pk=self.token.pk if self.token else None)[:MAX_TOKENS]
            ],
            flag_count=Flag.objects.active().filter(project=self.project).count(),
            may_create_flag=self.caller.can(Permission.CREATE_FEATURE, project=self.project.pk),
            connected=connected_applications(self.project, self.environment),
            page_url=self.request.build_absolute_uri(self.address(token="", since="")),
            openfeature_url=self.address(language="openfeature-in-node", token=""),
            **kwargs,
        )

    def _languages(self) -> list[tuple[str, str]]:
        """(label, key) of each tab, and ("", "") between the groups. OpenFeature's languages share one tab."""
        tabs: list[tuple[str, str]] = []
        for _, group in groupby(read_snippets().values(), key=attrgetter("group")):
            tabs += [("", "")] if tabs else []
            for snippet in group:
                label = "OpenFeature" if snippet.label.startswith("OpenFeature") else snippet.label
                if label not in dict(tabs):
                    tabs.append((label, snippet.key))
        return tabs

    def _is_openfeature(self, label: str) -> bool:
        return label == "OpenFeature" and self.snippet.label.startswith(label)

    def _variants(self) -> list[tuple[str, str, None, bool]]:
        """OpenFeature's languages, as segments."""
        if not self._is_openfeature("OpenFeature"):
            return []
        return [
            (
                snippet.label.removeprefix("OpenFeature in ").capitalize(),
                self.address(language=snippet.key, token=""),
                None,
                snippet == self.snippet,
            )
            for snippet in read_snippets().values()
            if snippet.group == OTHERS and snippet.label.startswith("OpenFeature")
        ]

    def get_api_body(self) -> Any:
        return {
            "tokenName": APPLICATION,
            "type": str(self.snippet.kind),
            "environment": self.environment,
            "projects": [self.project.pk],
        }


class LivePage(Choices):
    """The status line, requested by the page: 204 while there is no news."""

    template_name = "connect/live.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        context = self.live_context()
        if request.GET.get("state") == context["connection"].state:
            return HttpResponse(status=204)
        return self.render_to_response(context)


def free_name(project: Project, name: str) -> str:
    """``my-app``, or ``my-app-2`` if a token of the project has that name."""
    used = set(
        ApiToken.objects.filter(scopes__project_id=project.pk, name__startswith=name).values_list(
            "name", flat=True
        )
    )
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(each for each in names if each not in used)


def make_token(new: NewToken, caller: Caller) -> tuple[ApiToken, str]:
    """Makes the token with the root or the project permission. Raises NoAccess, ValidationError."""
    if caller.can(find_permission("CREATE", new.kind)):
        return create_token(new, caller=caller)
    assert new.projects
    return create_project_token(new.projects[0], new, caller=caller)
