"""Fills the playground's form with a saved context, and offers the existing ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from flagadmin.core.errors import Problem
from groups.access import Caller
from playground.models import SavedContext
from playground.pages.query import CONTEXT, KEPT, PlaygroundQuery, as_json, flatten_context, nest_context

SAVED, LOADED = "saved", "loaded"
MAX_OFFERED = 200
OF_CONTEXT = ("json", "name", "value", "as", KEPT, SAVED, LOADED)


@dataclass(frozen=True, slots=True)
class SavedChoices:
    """The names that the form offers. ``loaded`` is the one whose context the form has."""

    names: list[str]
    loaded: str
    more: bool


def offer_saved(caller: Caller, query: PlaygroundQuery) -> SavedChoices:
    """Two queries."""
    contexts = SavedContext.objects.readable_by(caller)
    names = list(contexts.values_list("name", flat=True)[: MAX_OFFERED + 1])
    loaded = ""
    if names and len(query.contexts) == 1 and query.contexts[0]:
        same_contexts = contexts.filter(context=query.contexts[0])
        loaded = same_contexts.values_list("name", flat=True).first() or ""
    offered = names[:MAX_OFFERED]
    if loaded and loaded not in offered:
        offered.append(loaded)
    return SavedChoices(offered, loaded, len(names) > MAX_OFFERED)


def fill_with_saved(
    parameters: QueryDict, caller: Caller, prefix: str = ""
) -> tuple[QueryDict, list[Problem]]:
    """The parameters with the context of the saved one that they choose, and what is wrong with the choice.

    A form that has just been filled with a saved context still names it; it is ``loaded``, so that changes to its
    fields are kept.
    """
    name = parameters.get(prefix + SAVED, "")
    if name in ("", parameters.get(prefix + LOADED)):
        return parameters, []
    saved = SavedContext.objects.readable_by(caller).filter(name=name).first()
    if saved is None:
        return parameters, [Problem(SAVED, f"saved context {name} not found")]
    filled = parameters.copy()
    for key in parameters:
        own = key.removeprefix(prefix) if key.startswith(prefix) else ""
        if own.startswith(CONTEXT) or own in OF_CONTEXT:
            del filled[key]
    for key, text in _make_parameters(saved.context):
        filled[prefix + key] = text
    return filled, []


def _make_parameters(context: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A context as the form's fields; as JSON if they cannot hold it, because commas part values there."""
    fields = flatten_context(context)
    plain = all(name.strip() == name != "" and text and "," not in text for name, text in fields.items())
    if plain and nest_context(fields) == context:
        return [(CONTEXT + name, text) for name, text in fields.items()]
    return [("json", as_json(context))]
