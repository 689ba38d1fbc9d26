"""/signals/: sources of signals, their tokens, and what arrived."""

from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, QuerySet
from django.urls import reverse, reverse_lazy

from flagadmin.core.lists.pages import Column, Filter
from flagadmin.core.wording import pluralize
from groups.console import Breadcrumbs, ConfirmPage, ConsolePage, FormPage, ListPage
from groups.one_time_secrets import ShowsSecretOnce
from groups.permissions import Permission
from integrations.models import SignalSource
from integrations.signals import actions
from integrations.signals.forms import SourceForm
from integrations.signals.queries import find_source, list_sources

SIGNALS = ("Signals", reverse_lazy("signals"))
API = "/api/admin/signals"
MAX_SHOWN = 20
READERS = (Permission.CREATE_ADDON, Permission.UPDATE_ADDON, Permission.DELETE_ADDON)


class SignalsPage(ListPage):
    template_name = "signals/signals.html"
    title = "Signals"
    csv_name = "signals"
    default_sort = "name"
    columns = (
        Column("name", "Source", by=("name",)),
        Column("kind", "Sends", by=("kind",)),
        Column("rule_count", "Rules", by=("rule_count",), numeric=True),
        Column("last_received", "Last signal", by=("last_received",)),
    )
    filters = (Filter("q", "Name"),)
    api_call = f"GET {API}"

    def find(self) -> None:
        self.caller.check_any(READERS)

    def get_rows(self, values: dict[str, str]) -> QuerySet[Any]:
        counted = list_sources().annotate(rule_count=Count("rules", distinct=True))
        return counted.filter(name__icontains=values["q"])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(may_create=self.caller.can(Permission.CREATE_ADDON), **kwargs)


class NewSource(ShowsSecretOnce, FormPage):
    parents = (SIGNALS,)
    template_name = "signals/token.html"
    title = "New source of signals"
    form_class = SourceForm
    api_call = f"POST {API}"
    api_example = {"name": "alertmanager", "kind": "alertmanager"}

    def find(self) -> None:
        self.caller.check(Permission.CREATE_ADDON)

    def submit(self, form: Any) -> str:
        data = form.cleaned_data
        source, token = actions.create_source(data["name"], data["kind"], caller=self.caller)
        self.created = {
            "secret": token,
            "back": make_source_url(source),
            "address": f"/api/signals/{source.name}",
        }
        return make_source_url(source)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**{"button": "Create source", "cancel": SIGNALS[1], **kwargs})


class SourcePage(ConsolePage):
    parents = (SIGNALS,)
    template_name = "signals/source.html"
    api_call = f"GET {API}/{{source_id}}"

    def find(self) -> None:
        self.caller.check_any(READERS)
        self.source = find_source(self.kwargs["source_id"])

    def get_title(self) -> str:
        return self.source.name

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        may_edit = self.caller.can(Permission.UPDATE_ADDON)
        return super().get_context_data(
            source=self.source,
            address=self.request.build_absolute_uri(f"/api/signals/{self.source.name}"),
            rules=self.source.rules.select_related("author"),
            signals=self.source.signals.all()[:MAX_SHOWN] if may_edit else (),
            may_edit=may_edit,
            may_delete=self.caller.can(Permission.DELETE_ADDON),
            **kwargs,
        )


class NewToken(ShowsSecretOnce, FormPage):
    template_name = "signals/token.html"
    title = "New token"
    form_class = forms.Form
    api_call = f"POST {API}/{{source_id}}/token"

    def find(self) -> None:
        self.caller.check(Permission.UPDATE_ADDON)
        self.source = find_source(self.kwargs["source_id"])

    def submit(self, form: Any) -> str:
        token = actions.replace_token(self.kwargs["source_id"], caller=self.caller)
        self.created = {"secret": token, "back": self.url()}
        return self.url()

    def url(self) -> str:
        return reverse("signal-source", args=[self.kwargs["source_id"]])

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (SIGNALS, (find_source(self.kwargs["source_id"]).name, self.url()))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            **{"button": "Create token", "cancel": self.url(), "replaces": True, **kwargs}
        )


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
                pluralize(source.rules.count(), "rule"),
                "the list of its signals",
            ],
            "button": f"Delete source {source.name}",
            "cancel": make_source_url(source),
        }

    def act(self) -> tuple[str, str]:
        actions.delete_source(self.kwargs["source_id"], caller=self.caller)
        return "Deleted the source.", str(SIGNALS[1])


def make_source_url(source: SignalSource) -> str:
    return reverse("signal-source", args=[source.pk])


def say_saved(page: ConsolePage, name: str, *, enabled: bool) -> None:
    state = "It is on." if enabled else "It is off. Try it, then enable it."
    messages.success(page.request, f"Saved rule {name}. {state}")
