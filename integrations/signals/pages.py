"""/signals/: sources of signals, their tokens, and received signals."""

from typing import Any

import orjson
from django import forms
from django.contrib import messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse, reverse_lazy

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.document import Document
from flagadmin.core.errors import AppError, pluralize
from flagadmin.core.lists.pages import Column, Filter, add_problems
from groups.console import Breadcrumbs, ConfirmPage, ConsolePage, EditPage, FormPage, ListPage, Permission
from groups.one_time_secrets import ShowsSecretOnce
from integrations.models import SignalRule, SignalSource
from integrations.signals import actions
from integrations.signals.actions import (
    READERS,
    find_rule,
    find_source,
    find_visible_source,
    list_rules_to_suspend,
    list_sources,
    make_rule_document,
    read_rules,
    select_visible_results,
)
from integrations.signals.receive import list_deaf_safeguards, try_rule
from projects.history.queries import readable_events
from projects.models import Environment, Project

_CODE = {"spellcheck": "false", "autocomplete": "off"}
MAX_EXAMPLE = 100_000  # characters


class SourceForm(forms.Form):
    name = forms.CharField(max_length=100, help_text="Part of the URL: lower-case letters, digits, - and _.")
    kind = forms.ChoiceField(label="It sends", choices=SignalSource.Kind.choices)


class MatchField(forms.CharField):
    """A condition a line: ``labels.severity = critical``."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=10_000, widget=forms.Textarea({**_CODE, "rows": 4}), **kwargs)

    def clean(self, value: Any) -> dict[str, str]:
        lines = [line for line in super().clean(value).splitlines() if line.strip()]
        pairs = [line.partition("=") for line in lines]
        if not all(equals and text.strip() for _, equals, text in pairs):
            raise forms.ValidationError("Each line must be a path, = and a value: labels.severity = critical")
        return {path.strip(): text.strip() for path, _, text in pairs}


class RuleForm(forms.Form):
    name = forms.CharField(max_length=100)
    match = MatchField(
        label="A signal must have",
        help_text="A path and a value in each line: labels.severity = critical. * is any value.",
    )
    project = forms.CharField(max_length=255, widget=forms.TextInput({**_CODE, "list": "projects"}))
    flag = forms.CharField(max_length=255, widget=forms.TextInput(_CODE))
    environment = forms.CharField(max_length=255, widget=forms.TextInput({**_CODE, "list": "environments"}))
    then = forms.ChoiceField(label="Then", choices=SignalRule.Action.choices)
    enabled = forms.BooleanField(required=False, help_text="Try the rule with an example first.")


class TrialForm(forms.Form):
    example = forms.CharField(
        max_length=MAX_EXAMPLE,
        help_text="JSON, as the source sends it.",
        widget=forms.Textarea({**_CODE, "rows": 14}),
    )

    def clean_example(self) -> dict[str, Any]:
        try:
            body = orjson.loads(self.cleaned_data["example"])
        except orjson.JSONDecodeError as error:
            raise forms.ValidationError(f"Invalid JSON: {error}.") from None
        if not isinstance(body, dict):
            raise forms.ValidationError("It must be a JSON object.")
        return body


def write_match(match: dict[str, str]) -> str:
    return "\n".join(f"{path} = {value}" for path, value in match.items())


SIGNALS = ("Signals", reverse_lazy("signals"))
API = "/api/admin/signals"
MAX_SHOWN = 20


class SignalsPage(ListPage):
    title = "Signals"
    lead = "Monitoring and other systems that can turn flags off or leave a note on them."
    noun = "source,sources"
    new = ("signal-source-new", "New source")
    creates = Permission.CREATE_ADDON
    none_yet = "No sources yet. A source, such as Alertmanager, sends signals; its rules say what they do."
    begin = ("signal-source-new", "Create the first source")
    default_sort = "name"
    columns = (
        Column("name", "Source", by=("name",), link='{% url "signal-source" row.pk %}'),
        Column("kind", "Sends", by=("kind",), cell="{{ row.get_kind_display }}"),
        Column("rule_count", "Rules", by=("rule_count",), numeric=True),
        Column("last_received", "Last signal", by=("last_received",), shown="ago", none="never"),
    )
    filters = (Filter("q", "Name", by=("name",)),)
    api_call = f"GET {API}"

    def find(self) -> None:
        self.caller.check_any(READERS)

    def get_rows(self, values: dict[str, str]) -> QuerySet[Any]:
        seen = self.caller.match_readable("rules__project")
        return list_sources().annotate(rule_count=Count("rules", distinct=True, filter=seen))


class NewSource(ShowsSecretOnce, FormPage):
    parents = (SIGNALS,)
    template_name = "signals/token.html"
    title = "New source of signals"
    button = "Create source"
    form_class = SourceForm
    permission = Permission.CREATE_ADDON
    api_call = f"POST {API}"
    api_example = {"name": "alertmanager", "kind": "alertmanager"}

    def submit(self, form: Any) -> str:
        data = form.cleaned_data
        source, token = actions.create_source(data["name"], data["kind"], caller=self.caller)
        self.created = {
            "secret": token,
            "back": make_source_url(source),
            "address": f"/api/signals/{source.name}",
        }
        return make_source_url(source)


class SourcePage(ConsolePage):
    title = "{page.source.name}"
    parents = (SIGNALS,)
    template_name = "signals/source.html"
    api_call = f"GET {API}/{{source_id}}"

    def find(self) -> None:
        self.source = find_visible_source(self.caller, self.kwargs["source_id"])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        may_edit = self.caller.can(Permission.UPDATE_ADDON)
        received = self.source.signals.all()[:MAX_SHOWN] if may_edit else ()
        return super().get_context_data(
            source=self.source,
            address=self.request.build_absolute_uri(f"/api/signals/{self.source.name}"),
            rules=read_rules(self.source, self.caller).select_related("author"),
            signals=select_visible_results(self.source, received, self.caller),
            may_edit=may_edit,
            may_delete=self.caller.can(Permission.DELETE_ADDON),
            deaf=list_deaf_safeguards(self.caller) if sends_alerts(self.source) else (),
            **kwargs,
        )


class NewToken(ShowsSecretOnce, FormPage):
    template_name = "signals/token.html"
    title = "New token"
    button = "Create token"
    form_class = forms.Form
    api_call = f"POST {API}/{{source_id}}/token"

    def find(self) -> None:
        self.caller.check(Permission.UPDATE_ADDON)
        self.source = find_source(self.kwargs["source_id"])

    def submit(self, form: Any) -> str:
        token, _ = actions.replace_token(self.source.pk, caller=self.caller)
        self.created = {"secret": token, "back": self.url()}
        return self.url()

    def url(self) -> str:
        return reverse("signal-source", args=[self.kwargs["source_id"]])

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (SIGNALS, (find_source(self.kwargs["source_id"]).name, self.url()))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        if "secret" not in kwargs:
            suspends = list_rules_to_suspend(self.source, self.caller)
            kwargs["suspends"] = [rule for rule in suspends if self.caller.can_read(rule.project)]
            kwargs["deafens"] = sends_alerts(self.source) and not self.caller.is_admin
        return super().get_context_data(replaces=True, **kwargs)


class DeleteSource(ConfirmPage):
    parents = (SIGNALS,)
    api_call = f"DELETE {API}/{{source_id}}"

    def plan(self) -> dict[str, Any]:
        self.caller.check(Permission.DELETE_ADDON)
        source = find_source(self.kwargs["source_id"])
        return {
            "title": f"Delete source {source.name}",
            "lead": "From then on, its signals are refused.",
            "removed_items": [
                "the source and its token",
                pluralize(read_rules(source, self.caller).count(), "rule"),
                "its signals",
            ],
            "cancel": make_source_url(source),
        }

    def act(self) -> tuple[str, str]:
        actions.delete_source(self.kwargs["source_id"], caller=self.caller)
        return "Deleted the source.", str(SIGNALS[1])


def sends_alerts(source: SignalSource) -> bool:
    return source.kind == SignalSource.Kind.ALERTMANAGER


def make_source_url(source: SignalSource) -> str:
    return reverse("signal-source", args=[source.pk])


def say_saved(page: ConsolePage, name: str, *, enabled: bool) -> None:
    state = "It is on." if enabled else "It is off. Try it, then enable it."
    messages.success(page.request, f"Saved rule {name}. {state}")


MAX_OFFERED = 200  # in a list; other names can be typed
EXAMPLE = {"name": "Checkout fails", "match": {"labels.alertname": "CheckoutErrors"}, "project": "shop"}


class RulePage(FormPage):
    """A page of a source's rule. ``rule`` is None for a new one."""

    source: SignalSource
    rule: SignalRule | None = None

    def find(self) -> None:
        self.caller.check(Permission.UPDATE_ADDON)
        self.source = find_source(self.kwargs["source_id"])
        if "rule_id" in self.kwargs:
            self.rule = find_rule(self.source, self.kwargs["rule_id"], self.caller)

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (SIGNALS, (self.source.name, make_source_url(self.source)))

    @property
    def api_path(self) -> str:
        rules = f"{API}/{self.source.pk}/rules"
        return f"{rules}/{self.rule.pk}" if self.rule else rules


class NewRule(RulePage):
    title = "New rule for {page.source.name}"
    template_name = "signals/rule.html"
    button = "Save rule"
    form_class: Any = RuleForm
    api_call = "POST {page.api_path}"
    api_example = EXAMPLE

    def submit(self, form: Any) -> str:
        return self.say(actions.save_rule(self.source.pk, form.cleaned_data, caller=self.caller))

    def say(self, rule: SignalRule) -> str:
        say_saved(self, rule.name, enabled=rule.enabled)
        return reverse("signal-rule-try", args=[self.source.pk, rule.pk])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        defaults = {
            "rule": self.rule,
            "source": self.source,
            "projects": Project.objects.active().readable_by(self.caller).order_by("pk")[:MAX_OFFERED],
            "environments": Environment.objects.all()[:MAX_OFFERED],
        }
        return super().get_context_data(**{**defaults, **kwargs})


class EditRule(EditPage, NewRule):
    title = "Rule {page.rule.name}"
    rule: SignalRule
    api_call = "PUT {page.api_path}"

    def get_events(self) -> QuerySet[AuditEvent]:
        changes = readable_events(self.caller).filter(
            type=EventType.SIGNAL_SOURCE_UPDATED, subject=self.source.name
        )
        return changes.filter(after__id=self.rule.pk)

    def get_current_document(self) -> Document:
        return make_rule_document(self.rule)

    def get_initial(self) -> dict[str, Any]:
        return make_rule_document(self.rule) | {"match": write_match(self.rule.match)}

    def submit(self, form: Any) -> str:
        expected = self.version.expected
        return self.say(
            actions.save_rule(
                self.source.pk,
                form.cleaned_data,
                rule_id=self.rule.pk,
                expected=expected,
                caller=self.caller,
            )
        )


class TryRule(RulePage):
    """Shows the outcome on the page itself, without changing anything."""

    template_name = "signals/trial.html"
    button = "Try it"
    form_class = TrialForm
    api_call = "POST {page.api_path}/try"
    api_example = {"summary": "Checkout fails"}

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.prepare()
        form = self.get_form()
        items = None
        if form.is_valid():
            assert self.rule is not None
            try:
                items = try_rule(self.rule, form.cleaned_data["example"])
            except AppError as error:
                add_problems(form, error, fields={"alerts": "example"})
        status = 200 if items is not None else 400
        return self.render_to_response(self.get_context_data(form=form, items=items), status=status)

    def get_title(self) -> str:
        assert self.rule is not None
        return f"Try {self.rule.name}"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        defaults = {
            "rule": self.rule,
            "source": self.source,
        }
        return super().get_context_data(**{**defaults, **kwargs})


class DeleteRule(ConfirmPage):
    api_call = f"DELETE {API}/{{source_id}}/rules/{{rule_id}}"

    def plan(self) -> dict[str, Any]:
        self.caller.check(Permission.UPDATE_ADDON)
        self.source = find_source(self.kwargs["source_id"])
        rule = find_rule(self.source, self.kwargs["rule_id"], self.caller)
        return {
            "title": f"Delete rule {rule.name}",
            "lead": "",
            "removed_items": [f"the rule {rule.name}"],
        }

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (SIGNALS, (self.source.name, make_source_url(self.source)))

    def act(self) -> tuple[str, str]:
        source_id = self.kwargs["source_id"]
        actions.delete_rule(source_id, self.kwargs["rule_id"], caller=self.caller)
        return "Deleted the rule.", reverse("signal-source", args=[source_id])
