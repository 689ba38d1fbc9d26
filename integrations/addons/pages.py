"""/integrations/: the list of integrations, their forms, and their deliveries."""

from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Q, QuerySet
from django.urls import reverse, reverse_lazy

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.sentences import make_sentence
from flagadmin.core.document import Document
from flagadmin.core.errors import NotFound, pluralize
from groups.console import (
    ActionPage,
    Breadcrumbs,
    Column,
    ConfirmPage,
    EditPage,
    Filter,
    FormPage,
    ListPage,
    Permission,
)
from groups.one_time_secrets import ShowsSecretOnce
from integrations.addons import actions
from integrations.addons.actions import list_created_again
from integrations.addons.forms import PARAMETER, IntegrationForm, make_initial_values
from integrations.addons.queries import (
    annotate_events,
    find_integration,
    list_integrations,
    make_integration_document,
    name_of,
)
from integrations.models import Delivery, Integration
from integrations.providers import PROVIDERS, Provider
from projects.console import InProjectPage
from projects.history.changes import find_actors, make_actor
from projects.models import Project
from projects.projects.head import make_project_head

INTEGRATIONS = ("Integrations", reverse_lazy("integrations"))
API = "/api/admin/addons"
STATES = {
    Delivery.State.SUCCESS: ("on", "Delivered"),
    Delivery.State.WITH_ERRORS: ("warn", "Delivered with errors"),
    Delivery.State.FAILED: ("error", "Failed"),
    Delivery.State.PENDING: ("info", "Waiting"),
    Delivery.State.LEFT_OUT: ("off", "Left out"),
}


class IntegrationsPage(ListPage):
    template_name = "integrations/integrations.html"
    title = "Integrations"
    default_sort = "name"
    lead = "Send changes to chat, webhooks and other systems."
    noun = "integration,integrations"
    none_yet = "No integrations yet."
    keeps_bar = False
    columns = (
        Column(
            "name",
            "Integration",
            by=("provider", "id"),
            csv=name_of,
            cell='{% if may_edit %}<a href="{% url "integration" row.pk %}">{{ row.shown_name }}</a>'
            "{% else %}<strong>{{ row.shown_name }}</strong>{% endif %}",
        ),
        Column("description", "Description", by=("description",), shown='default:""', unlabeled=True),
        Column(
            "state",
            "State",
            by=("enabled",),
            csv=lambda row: "enabled" if row.enabled else "disabled",
            pill='{{ row.enabled|yesno:"on,off" }}',
            shown='yesno:"Enabled,Disabled"',
        ),
        Column("last_sent", "Last sent", by=("last_sent",), shown="ago", none="never"),
    )
    creates = Permission.CREATE_ADDON
    filters = (Filter("q", "Provider or description", by=("provider", "description")),)
    api_call = f"GET {API}"

    def get_rows(self, values: dict[str, str]) -> QuerySet[Integration]:
        return list_integrations(self.caller)

    def complete(self, rows: list[Any]) -> list[Any]:
        for row in rows:
            row.shown_name = name_of(row)
        return rows

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        may_edit = self.caller.can(Permission.UPDATE_ADDON)
        return super().get_context_data(providers=PROVIDERS.values(), may_edit=may_edit, **kwargs)


class ProjectIntegrationsPage(InProjectPage, IntegrationsPage):
    """The integrations that send the project's changes."""

    csv_name = "{project_id}-integrations"

    def get_rows(self, values: dict[str, str]) -> QuerySet[Integration]:
        here = Q(projects__contains=[self.project.pk])
        if self.project.mode != Project.Mode.PRIVATE:  # those of all projects send nothing of a private one
            here |= Q(projects=[]) | Q(projects__contains=["*"])
        return super().get_rows(values).filter(here)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        head = make_project_head(self.project, "project-integrations", caller=self.caller)
        return super().get_context_data(parent="projects/base.html", **head, **kwargs)


class NewIntegration(FormPage):
    title = "New integration: {page.provider.display_name}"
    parents = (INTEGRATIONS,)
    template_name = "integrations/integration.html"
    form_class: Any = IntegrationForm
    provider: Provider
    button = "Create integration"
    api_call = f"POST {API}"

    def find(self) -> None:
        self.caller.check(Permission.CREATE_ADDON)
        provider = PROVIDERS.get(self.kwargs["provider"])
        if provider is None:
            raise NotFound("There is no such provider.")
        self.provider = provider

    @property
    def problem_fields(self) -> dict[str, str]:  # type: ignore[override]
        names = [parameter.name for parameter in self.provider.parameters]
        return {f"parameters.{name}": f"{PARAMETER}{name}" for name in names}

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"provider": self.provider}

    def submit(self, form: Any) -> str:
        created = actions.create_integration(form.values(), caller=self.caller)
        messages.success(self.request, f"Created {name_of(created)}. Send a test to try it.")
        return reverse("integration", args=[created.pk])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs | {"provider": self.provider})
        return context | {"field_groups": context["form"].groups(), "folded": context["form"].folded()}

    def get_api_body(self) -> Any:
        parameters = {
            parameter.name: parameter.placeholder or "…"
            for parameter in self.provider.parameters
            if parameter.required
        }
        return {"provider": self.provider.name, "parameters": parameters, "events": ["feature-created"]}


class EditIntegration(EditPage, NewIntegration):
    integration: Integration
    button = "Save integration"
    api_call = f"PUT {API}/{{integration_id}}"

    def find(self) -> None:
        self.caller.check(Permission.UPDATE_ADDON)
        self.integration = find_integration(self.caller, self.kwargs["integration_id"])
        self.provider = PROVIDERS[self.integration.provider]

    def get_events(self) -> QuerySet[AuditEvent]:
        return AuditEvent.objects.filter(type=EventType.ADDON_UPDATED, subject=name_of(self.integration))

    def get_current_document(self) -> Document:
        return make_integration_document(self.integration)

    def get_initial(self) -> dict[str, Any]:
        return make_initial_values(self.provider, make_integration_document(self.integration))

    def submit(self, form: Any) -> str:
        changed = actions.update_integration(
            self.integration.pk, form.values(), expected=self.version.expected, caller=self.caller
        )
        return self.done(f"Changed {name_of(changed)}.", reverse("integrations"))

    def get_title(self) -> str:
        return name_of(self.integration)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        shown = {
            "may_delete": self.caller.can(Permission.DELETE_ADDON),
            "may_see_deliveries": self.caller.can(Permission.ADMIN),
            "created_again": list_created_again(self.integration),
            "test": self.find_test(),
        }
        return context | shown | {"integration": self.integration}

    def find_test(self) -> Delivery | None:
        """The last test, with what the receiver answered for those who may see deliveries."""
        test = self.integration.deliveries.filter(event_id=None).order_by("-pk")[:1]
        return next(iter(describe_deliveries(list(test))), None)

    def get_api_body(self) -> Any:
        return self.get_current_document()


class OneIntegration(ActionPage):
    """A button on the pages of an integration."""

    def get_success_url(self) -> str:
        return reverse("integration", args=[self.kwargs["integration_id"]])


class SendTest(OneIntegration):
    def act(self) -> str:
        actions.send_test(self.kwargs["integration_id"], caller=self.caller)
        return "Sending a test."


class SendAgain(OneIntegration):
    def act(self) -> str:
        actions.send_again(self.kwargs["integration_id"], self.kwargs["delivery_id"], caller=self.caller)
        return "Sending it again. Its result appears here in a few seconds."

    def get_success_url(self) -> str:
        return reverse("deliveries", args=[self.kwargs["integration_id"]])


class SendAllAgain(SendAgain):
    def act(self) -> str:
        number = actions.send_all_again(self.kwargs["integration_id"], caller=self.caller)
        return f"Sending {pluralize(number, 'delivery', 'deliveries')} again. Results appear here in a few seconds."


class NewSigningKey(ShowsSecretOnce, FormPage):
    template_name = "integrations/signing_key.html"
    title = "New signing key"
    button = "Create signing key"
    form_class = forms.Form
    api_call = f"POST {API}/{{integration_id}}/signing-key"

    def find(self) -> None:
        self.caller.check(Permission.UPDATE_ADDON)
        self.integration = find_integration(self.caller, self.kwargs["integration_id"])

    def submit(self, form: Any) -> str:
        key = actions.make_signing_key(self.kwargs["integration_id"], caller=self.caller)
        self.created = {"secret": key, "back": self.url()}
        return self.url()

    def url(self) -> str:
        return reverse("integration", args=[self.kwargs["integration_id"]])

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (
            INTEGRATIONS,
            (name_of(find_integration(self.caller, self.kwargs["integration_id"])), self.url()),
        )


class DeleteIntegration(ConfirmPage):
    parents = (INTEGRATIONS,)
    api_call = f"DELETE {API}/{{integration_id}}"

    def plan(self) -> dict[str, Any]:
        self.caller.check(Permission.DELETE_ADDON)
        integration = find_integration(self.caller, self.kwargs["integration_id"])
        waiting = integration.deliveries.filter(state=Delivery.State.PENDING).count()
        return {
            "title": f"Delete {name_of(integration)}",
            "lead": integration.description or "",
            "removed_items": ["the integration with its secrets", "its delivery history"]
            + ([f"{waiting:,} deliveries that wait to be sent"] if waiting else []),
            "cancel": reverse("integration", args=[integration.pk]),
        }

    def act(self) -> tuple[str, str]:
        actions.delete_integration(self.kwargs["integration_id"], caller=self.caller)
        return "Deleted the integration.", str(INTEGRATIONS[1])


class DeliveriesPage(ListPage):
    template_name = "integrations/deliveries.html"
    lead = "Messages sent and waiting to be sent. Kept for 30 days."
    noun = "delivery,deliveries"
    csv_name = "deliveries"
    none_yet = "Nothing has been sent yet."
    default_sort = "-id"
    columns = (
        Column(
            "id", "Delivery", by=("id",), csv=lambda row: f"msg_{row.pk}", cell="msg_{{ row.pk }}", css="mono"
        ),
        Column(
            "event",
            "Event",
            csv=lambda row: row.event_id or "test",
            cell='{% include "integrations/delivery.html" %}',
            unlabeled=True,
        ),
        Column("state", "State", by=("state",), pill="{{ row.pill }}", cell="{{ row.label }}"),
        Column("attempts", "Attempts", by=("attempts",), numeric=True),
        Column("sent_at", "Sent", by=("sent_at",), shown="ago", none="not yet"),
        Column(
            "", "Actions", cell='{% if row.sent_at %}{% include "integrations/send_again.html" %}{% endif %}'
        ),
    )
    filters = (
        Filter(
            "state", "State", [(state.value, label) for state, (_, label) in STATES.items()], by=("state",)
        ),
    )
    integration: Integration
    api_call = f"GET {API}/{{integration_id}}/events"

    def find(self) -> None:
        self.caller.check(Permission.ADMIN)
        self.integration = find_integration(self.caller, self.kwargs["integration_id"])

    def get_rows(self, values: dict[str, str]) -> QuerySet[Delivery]:
        return self.integration.deliveries.all()

    def complete(self, rows: list[Any]) -> list[Any]:
        return describe_deliveries(rows)

    def get_breadcrumbs(self) -> Breadcrumbs:
        name = name_of(self.integration)
        return (INTEGRATIONS, (name, reverse("integration", args=[self.integration.pk])))

    def get_title(self) -> str:
        return f"Deliveries of {name_of(self.integration)}"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        failed = self.integration.deliveries.filter(state=Delivery.State.FAILED).count()
        return super().get_context_data(integration=self.integration, failed=failed, **kwargs)


def describe_deliveries(deliveries: list[Any]) -> list[Any]:
    """Each with its state, its event and the full name of the person who caused it. Two queries."""
    pairs: list[tuple[Any, AuditEvent | None]] = list(annotate_events(deliveries))
    people = find_actors(event for _, event in pairs if event)
    for delivery, event in pairs:
        delivery.pill, delivery.label = STATES[Delivery.State(delivery.state)]
        delivery.text = f"{make_actor(event, people).name} {make_sentence(event)}" if event else "Test"
    return deliveries
