"""The form of an integration, made from the parameters of its provider."""

from itertools import chain
from typing import Any

from django import forms
from django.utils.html import format_html

from flagadmin.core.audit.events import KINDS, find_type, group_types
from flagadmin.core.audit.sentences import make_label
from flagadmin.core.errors import pluralize
from integrations.providers import MASK, Parameter, Provider

OFTEN_SET = ("production_only", "only_if_users_change")
PARAMETER, EVENTS = "parameter_", "events_"
"""Prefixes for the names of parameters and of kinds of events, so that they clash with no other field."""


class NamesField(forms.CharField):
    """Names separated by commas."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, max_length=10_000, **kwargs)

    def clean(self, value: Any) -> list[str]:
        return [name.strip() for name in super().clean(value).split(",") if name.strip()]


class IntegrationForm(forms.Form):
    description = forms.CharField(required=False, max_length=1000)
    enabled = forms.BooleanField(required=False, initial=True)
    projects = NamesField(help_text="Ids separated by commas. All projects that are not private by default.")
    environments = NamesField(
        help_text="Names separated by commas. All by default. Events without an environment are always sent."
    )
    tags = NamesField(
        help_text="Tags separated by commas, such as team:checkout: only flags with one of them. All events by default."
    )
    production_only = forms.BooleanField(
        required=False,
        initial=True,
        label="Only what changes production",
        help_text="And events without an environment, such as a new flag.",
    )
    only_if_users_change = forms.BooleanField(
        required=False,
        label="Only if users change",
        help_text="Skips flag changes that change no result for 10,000 generated users, and says how many change.",
    )
    other_events = NamesField(
        label="Other events",
        help_text="Types of any events in the audit log, separated by commas: user-created, role-updated.",
    )

    def __init__(self, provider: Provider, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.provider = provider
        events = {
            f"{EVENTS}{kind}": _make_events_field(kind, names)
            for kind, names in group_types(list_offered_events(provider)).items()
        }
        parameters = {
            f"{PARAMETER}{parameter.name}": _make_field(parameter, is_stored=bool(self.initial))
            for parameter in provider.parameters
        }
        others = {"other_events": self.fields.pop("other_events")}
        described = {"description": self.fields.pop("description")}
        self.fields = {**described, **parameters, **self.fields, **events, **others}

    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        """The fields of the destination, and those that are often set of the events."""
        where = [name for name in self.fields if name.startswith(("description", PARAMETER, "enabled"))]
        return [
            ("Where it sends", [self[name] for name in where]),
            ("Which events", [self[name] for name in self.fields if name in OFTEN_SET]),
        ]

    def folded(self) -> dict[str, Any]:
        """The other fields of the events, behind how many kinds are chosen of all that are offered."""
        names = [name for name in self.fields if name.startswith(EVENTS)]
        rare = ("projects", "environments", "tags", *names, "other_events")
        offered = sum(len(self[name].subwidgets) for name in names)
        chosen = sum(len(self[name].value() or ()) for name in names)
        return {
            "label": f"{chosen} of {pluralize(offered, 'kind')} of events, projects, environments and tags",
            "fields": [self[name] for name in rare],
            "is_open": any(self[name].errors for name in rare),
        }

    def values(self) -> dict[str, Any]:
        """The values in the form of the API's body."""
        data = self.cleaned_data
        names = [parameter.name for parameter in self.provider.parameters]
        return {
            "provider": self.provider.name,
            "description": data["description"] or None,
            "enabled": data["enabled"],
            "parameters": {name: data[f"{PARAMETER}{name}"] for name in names},
            "events": [
                *chain.from_iterable(data[name] for name in self.fields if name.startswith(EVENTS)),
                *data["other_events"],
            ],
            "projects": data["projects"],
            "environments": data["environments"],
            "tags": data["tags"],
            "productionOnly": data["production_only"],
            "onlyIfUsersChange": data["only_if_users_change"],
        }


def list_offered_events(provider: Provider) -> list[str]:
    """Lists the events of the provider that happen here."""
    return sorted(name for name in provider.events if find_type(name))


def make_initial_values(provider: Provider, document: dict[str, Any]) -> dict[str, Any]:
    """``document``: the stored integration."""
    offered = list_offered_events(provider)
    # Includes kinds without a chosen event: a missing value would mean all.
    stored = {
        kind: [name for name in names if name in document["events"]]
        for kind, names in group_types(offered).items()
    }
    return {
        "description": document["description"] or "",
        "enabled": document["enabled"],
        "projects": ", ".join(document["projects"]),
        "environments": ", ".join(document["environments"]),
        "tags": ", ".join(document["tags"]),
        "production_only": document["productionOnly"],
        "only_if_users_change": document["onlyIfUsersChange"],
        **{f"{EVENTS}{kind}": names for kind, names in stored.items()},
        "other_events": ", ".join(name for name in document["events"] if name not in offered),
        **{f"{PARAMETER}{name}": value for name, value in document["parameters"].items()},
    }


def _make_events_field(kind: str, names: list[str]) -> forms.MultipleChoiceField:
    label, _ = KINDS[kind]
    text = '<span>{}<small class="below muted">{}</small></span>'
    choices = [(name, format_html(text, make_label(name), name)) for name in names]
    return forms.MultipleChoiceField(
        label=label, choices=choices, initial=names, required=False, widget=forms.CheckboxSelectMultiple
    )


def _make_field(parameter: Parameter, *, is_stored: bool) -> forms.CharField:
    is_long = parameter.type == "textfield"
    attributes = {"spellcheck": "false", "autocomplete": "off", "placeholder": parameter.placeholder}
    widget = forms.Textarea({**attributes, "rows": 3}) if is_long else forms.TextInput(attributes)
    secret = f" Stored. Leave {MASK} to keep it." if is_stored else " Kept secret."
    note = secret if parameter.sensitive else ""
    return forms.CharField(
        label=parameter.label,
        help_text=f"{parameter.description}{note}",
        required=parameter.required,
        strip=not is_long,
        widget=widget,
    )
