"""/signals/ID/rules/: what a signal does, tried with an example before it is on."""

from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse

from flagadmin.core.errors import AppError
from flagadmin.core.lists.pages import add_problems, curl_for
from groups.console import ConfirmPage, Crumbs, FormPage
from groups.permissions import Permission
from integrations.models import SignalRule, SignalSource
from integrations.signals import actions
from integrations.signals.documents import rule_document
from integrations.signals.forms import RuleForm, TrialForm, write_match
from integrations.signals.pages import API, SIGNALS, say_saved, source_url
from integrations.signals.queries import find_rule, find_source
from integrations.signals.receive import try_rule

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

    def crumbs(self) -> Crumbs:
        return (SIGNALS, (self.source.name, source_url(self.source)))

    @property
    def api_path(self) -> str:
        rules = f"{API}/{self.source.pk}/rules"
        return f"{rules}/{self.rule.pk}" if self.rule else rules


class SaveRule(RulePage):
    template_name = "signals/rule.html"
    form_class = RuleForm

    def get_initial(self) -> dict[str, Any]:
        if self.rule is None:
            return {}
        return rule_document(self.rule) | {"match": write_match(self.rule.match)}

    def submit(self, form: Any) -> str:
        rule_id = self.rule.pk if self.rule else None
        rule = actions.save_rule(self.source.pk, form.cleaned_data, rule_id=rule_id, caller=self.caller)
        say_saved(self, rule.name, enabled=rule.enabled)
        return reverse("signal-rule-try", args=[self.source.pk, rule.pk])

    def get_title(self) -> str:
        return f"Rule {self.rule.name}" if self.rule else f"New rule for {self.source.name}"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        defaults = {
            "button": "Save rule",
            "cancel": source_url(self.source),
            "rule": self.rule,
            "source": self.source,
        }
        return super().get_context_data(**{**defaults, **kwargs})

    def curl(self) -> str:
        return curl_for(self.request, "PUT" if self.rule else "POST", self.api_path, EXAMPLE)


class TryRule(RulePage):
    """Shows the outcome on the page itself: nothing is changed."""

    template_name = "signals/trial.html"
    form_class = TrialForm

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
            "cancel": source_url(self.source),
            "rule": self.rule,
            "source": self.source,
        }
        return super().get_context_data(**{**defaults, **kwargs})

    def curl(self) -> str:
        return curl_for(self.request, "POST", f"{self.api_path}/try", {"summary": "Checkout fails"})


class DeleteRule(ConfirmPage):
    def plan(self) -> dict[str, Any]:
        self.caller.check(Permission.UPDATE_ADDON)
        self.source = find_source(self.kwargs["source_id"])
        rule = find_rule(self.source, self.kwargs["rule_id"])
        return {
            "title": f"Delete rule {rule.name}",
            "lead": "",
            "removed_items": [f"the rule {rule.name}"],
            "button": f"Delete rule {rule.name}",
            "cancel": source_url(self.source),
        }

    def crumbs(self) -> Crumbs:
        return (SIGNALS, (self.source.name, source_url(self.source)))

    def act(self) -> tuple[str, str]:
        source_id = self.kwargs["source_id"]
        actions.delete_rule(source_id, self.kwargs["rule_id"], caller=self.caller)
        return "Deleted the rule.", reverse("signal-source", args=[source_id])

    def curl(self) -> str:
        return curl_for(
            self.request, "DELETE", f"{API}/{self.kwargs['source_id']}/rules/{self.kwargs['rule_id']}"
        )
