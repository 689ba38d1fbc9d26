"""/signals/ID/rules/: what a signal does, tried with an example before it is on."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.document import Document
from flagadmin.core.errors import AppError
from flagadmin.core.lists.pages import add_problems
from groups.console import Breadcrumbs, ConfirmPage, EditPage, FormPage
from groups.permissions import Permission
from integrations.models import SignalRule, SignalSource
from integrations.signals import actions
from integrations.signals.documents import make_rule_document
from integrations.signals.forms import RuleForm, TrialForm, write_match
from integrations.signals.pages import API, SIGNALS, make_source_url, say_saved
from integrations.signals.queries import find_rule, find_source
from integrations.signals.receive import try_rule
from projects.models import Environment, Project

MAX_OFFERED = 200  # in a list; any other name can be typed
EXAMPLE = {"name": "Checkout fails", "match": {"labels.alertname": "CheckoutErrors"}, "project": "shop"}


class RulePage(FormPage):
    """A page of a source's rule. ``rule`` is None for a new one."""

    source: SignalSource
    rule: SignalRule | None = None

    def find(self) -> None:
        self.caller.check(Permission.UPDATE_ADDON)
        self.source = find_source(self.kwargs["source_id"])
        if "rule_id" in self.kwargs:
            self.rule = find_rule(self.source, self.kwargs["rule_id"])

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (SIGNALS, (self.source.name, make_source_url(self.source)))

    @property
    def api_path(self) -> str:
        rules = f"{API}/{self.source.pk}/rules"
        return f"{rules}/{self.rule.pk}" if self.rule else rules


class NewRule(RulePage):
    template_name = "signals/rule.html"
    form_class: Any = RuleForm
    api_call = "POST {page.api_path}"
    api_example = EXAMPLE

    def submit(self, form: Any) -> str:
        return self.say(actions.save_rule(self.source.pk, form.cleaned_data, caller=self.caller))

    def say(self, rule: SignalRule) -> str:
        say_saved(self, rule.name, enabled=rule.enabled)
        return reverse("signal-rule-try", args=[self.source.pk, rule.pk])

    def get_title(self) -> str:
        return f"New rule for {self.source.name}"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        defaults = {
            "button": "Save rule",
            "cancel": make_source_url(self.source),
            "rule": self.rule,
            "source": self.source,
            "projects": Project.objects.active().readable_by(self.caller).order_by("pk")[:MAX_OFFERED],
            "environments": Environment.objects.all()[:MAX_OFFERED],
        }
        return super().get_context_data(**{**defaults, **kwargs})


class EditRule(EditPage, NewRule):
    rule: SignalRule
    api_call = "PUT {page.api_path}"

    def get_events(self) -> QuerySet[AuditEvent]:
        changes = AuditEvent.objects.filter(type=EventType.SIGNAL_SOURCE_UPDATED, subject=self.source.name)
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

    def get_title(self) -> str:
        return f"Rule {self.rule.name}"


class TryRule(RulePage):
    """Shows the outcome on the page itself: nothing is changed."""

    template_name = "signals/trial.html"
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
            "button": "Try it",
            "cancel": make_source_url(self.source),
            "rule": self.rule,
            "source": self.source,
        }
        return super().get_context_data(**{**defaults, **kwargs})


class DeleteRule(ConfirmPage):
    api_call = f"DELETE {API}/{{source_id}}/rules/{{rule_id}}"

    def plan(self) -> dict[str, Any]:
        self.caller.check(Permission.UPDATE_ADDON)
        self.source = find_source(self.kwargs["source_id"])
        rule = find_rule(self.source, self.kwargs["rule_id"])
        return {
            "title": f"Delete rule {rule.name}",
            "lead": "",
            "removed_items": [f"the rule {rule.name}"],
            "button": f"Delete rule {rule.name}",
            "cancel": make_source_url(self.source),
        }

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (SIGNALS, (self.source.name, make_source_url(self.source)))

    def act(self) -> tuple[str, str]:
        source_id = self.kwargs["source_id"]
        actions.delete_rule(source_id, self.kwargs["rule_id"], caller=self.caller)
        return "Deleted the rule.", reverse("signal-source", args=[source_id])
