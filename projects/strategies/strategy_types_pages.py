"""/strategy-types/: the list of strategy types, and the pages that create, edit and delete custom ones."""

from collections.abc import Callable, Sequence
from typing import Any

from django import forms
from django.db.models import Count, QuerySet
from django.urls import reverse, reverse_lazy
from django.utils.functional import cached_property
from django.utils.html import format_html

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from groups.console import Column, EditPage, Filter, FormPage, ListPage, Permission
from playground.engine.strategy_types import STRATEGY_TYPES
from projects.history.queries import readable_events
from projects.models import Strategy, StrategyType
from projects.reverts.change_plan import UndoableAction
from projects.strategies import strategy_types as actions
from projects.strategies.rules import PARAMETER_TYPES

LEGACY = "For existing flags. New flags should use a gradual rollout or a condition."
CUSTOM = 'Only SDKs that know the type can evaluate it; here its result is "can\'t tell".'


def mark(row: StrategyType) -> tuple[str, str]:
    """The badge of an unusual type and its explanation: ``("custom", "Only SDKs …")``."""
    if row.name not in STRATEGY_TYPES:
        return "custom", CUSTOM
    return ("", "") if row.built_in else ("legacy", LEGACY)


class StrategyTypesPage(ListPage):
    title = "Strategy types"
    lead = (
        "How a strategy decides who gets a flag. Custom types are evaluated only by SDKs that implement them."
    )
    noun = "strategy type,strategy types"
    table_class = "stack actions"
    new = ("strategy-type-new", "New strategy type")
    creates = Permission.CREATE_STRATEGY
    none_yet = "No strategy types yet."
    columns = (
        Column(
            "name", "Strategy type", by=("name",), cell='{% include "strategies/strategy_type_name.html" %}'
        ),
        Column("description", "Description", unlabeled=True),
        Column("takes", "Parameters", none="None"),
        Column("used", "Used by strategies", numeric=True),
        Column(
            "",
            "Actions",
            cell='{% if row.name != "default" %}{% include "strategies/strategy_type_menu.html" %}{% endif %}',
            permission=Permission.UPDATE_STRATEGY,
        ),
    )
    filters = (Filter("q", "Name or description", by=("name", "description", "title")),)
    api_call = "GET /api/admin/strategies"

    def get_rows(self, values: dict[str, str]) -> QuerySet[Any]:
        return StrategyType.objects.all()

    @cached_property
    def used(self) -> dict[str, int]:
        counted = Strategy.objects.order_by().values("name").annotate(count=Count("id"))
        return dict(counted.values_list("name", "count"))

    def complete(self, rows: list[Any]) -> list[Any]:
        for row in rows:
            row.takes, row.used, row.mark = join_parameter_names(row), self.used.get(row.name, 0), mark(row)
        return rows

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            may_edit=self.caller.can(Permission.UPDATE_STRATEGY),
            may_delete=self.caller.can(Permission.DELETE_STRATEGY),
            **kwargs,
        )


def join_parameter_names(row: StrategyType) -> str:
    """The names of the type's parameters."""
    return ", ".join(item["name"] for item in row.parameters)


class StrategyTypeForm(forms.Form):
    title = forms.CharField(required=False, max_length=255)
    description = forms.CharField(required=False)
    parameters = forms.CharField(
        required=False,
        help_text=format_html(
            "One per line: <code>name :: type :: description</code>. An asterisk after the type makes it required. "
            "Types: {}.",
            ", ".join(sorted(PARAMETER_TYPES)),
        ),
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"}),
    )

    def clean_parameters(self) -> list[dict[str, Any]]:
        return [
            _read_parameter(line) for line in self.cleaned_data["parameters"].splitlines() if line.strip()
        ]


def _read_parameter(line: str) -> dict[str, Any]:
    parts = [part.strip() for part in line.split(" :: ", 2)]
    name, kind, description = (*parts, *("", "string", "")[len(parts) :])
    return {
        "name": name,
        "type": kind.removesuffix("*"),
        "description": description,
        "required": kind.endswith("*"),
    }


def format_parameters(parameters: Sequence[dict[str, Any]]) -> str:
    """The parameters as text for the form, one per line: ``hosts :: list* :: the hosts it is on for``."""
    return "\n".join(
        " :: ".join(
            filter(
                None,
                (
                    item["name"],
                    item["type"] + ("*" if item.get("required") else ""),
                    item.get("description"),
                ),
            )
        )
        for item in parameters
    )


class NewStrategyTypeForm(StrategyTypeForm):
    name = forms.CharField(max_length=255, widget=forms.TextInput(attrs={"spellcheck": "false"}))
    field_order = ["name"]


class NewStrategyType(FormPage):
    template_name = "console/form.html"
    title = "New strategy type"
    form_class: type[forms.Form] = NewStrategyTypeForm
    permission = Permission.CREATE_STRATEGY
    button = "Create strategy type"
    parents = (("Strategy types", reverse_lazy("strategy-types")),)
    api_call = "POST /api/admin/strategies"
    api_example = {"name": "hostGroup", "parameters": [{"name": "hosts", "type": "list", "required": True}]}

    def submit(self, form: Any) -> str:
        strategy_type = actions.create_strategy_type(form.cleaned_data, caller=self.caller)
        return self.done(f"Created strategy type {strategy_type.name}.", reverse("strategy-types"))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(lead=self.lead(), **kwargs)

    def lead(self) -> str:
        return CUSTOM


class EditStrategyType(EditPage, NewStrategyType):
    form_class = StrategyTypeForm
    permission = Permission.UPDATE_STRATEGY
    button = "Save strategy type"
    title = "Strategy type {name}"
    api_call = "PUT /api/admin/strategies/{name}"

    def find(self) -> None:
        self.strategy_type = actions.access_strategy_type(self.kwargs["name"])
        super().find()
        actions.check_not_built_in(self.strategy_type)

    def get_events(self) -> QuerySet[AuditEvent]:
        kinds = (EventType.STRATEGY_UPDATED, EventType.STRATEGY_DEPRECATED, EventType.STRATEGY_REACTIVATED)
        return readable_events(self.caller).filter(type__in=kinds, subject=self.strategy_type.pk)

    def get_current_document(self) -> dict[str, Any]:
        return self.strategy_type.document()

    def get_initial(self) -> dict[str, Any]:
        row = self.strategy_type
        lines = format_parameters(row.parameters)
        return {"title": row.title, "description": row.description, "parameters": lines}

    def submit(self, form: Any) -> str:
        name, expected = self.strategy_type.pk, self.version.expected
        actions.update_strategy_type(name, form.cleaned_data, expected=expected, caller=self.caller)
        return self.done(f"Changed strategy type {name}.", reverse("strategy-types"))

    def lead(self) -> str:
        return mark(self.strategy_type)[1]

    def get_api_body(self) -> dict[str, Any]:
        row = self.strategy_type
        return {"description": row.description, "parameters": row.parameters}


VERBS: dict[str, tuple[Callable[..., Any], str]] = {
    "deprecate": (actions.deprecate_strategy_type, "It is no longer offered for new strategies."),
    "reactivate": (actions.reactivate_strategy_type, "It is offered for new strategies again."),
    "delete": (actions.delete_strategy_type, "No strategy used it."),
}


class StrategyTypeAction(UndoableAction):
    success_url = reverse_lazy("strategy-types")
    verb = ""

    def act(self) -> str:
        action, effect = VERBS[self.verb]
        action(self.kwargs["name"], caller=self.caller)
        return f"{self.verb.capitalize()}d strategy type {self.kwargs['name']}. {effect}"
