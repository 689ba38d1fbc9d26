"""Reads the strategy form, and prepares a strategy for its template."""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from flagadmin.errors import Problem
from playground.engine.coercion import mapping_of
from playground.engine.strategies import STRATEGIES
from projects.models import ContextField, Segment, StrategyType
from projects.strategies.constraint_forms import (
    ConstraintFields,
    ConstraintRow,
    constraint_rows,
    given_constraints,
)
from projects.strategies.fields import FIELDS
from projects.strategies.known_names import usable
from projects.strategies.variant_forms import VariantRow, given_variants, variant_rows
from projects.strategies.variant_rules import variants_document

Document = dict[str, Any]
STICKINESS = ("default", "userId", "sessionId", "random")
_PLACE = re.compile(r"(constraints|variants)\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Parameter:
    """The input of a parameter. ``kind``: percentage, number, list, boolean, stickiness or string."""

    name: str
    label: str
    kind: str
    value: str
    hint: str
    options: Sequence[str]
    errors: Sequence[str]


@dataclass(frozen=True, slots=True)
class StrategyInputs:
    """The template context of a strategy. ``errors`` are those that belong to no input."""

    document: Document
    type_title: str
    parameters: Sequence[Parameter]
    constraints: Sequence[ConstraintRow]
    segments: Sequence[tuple[Segment, bool]]
    variants: Sequence[VariantRow]
    variants_stickiness: str
    stickiness: Sequence[str]
    errors: Sequence[str]


def given_strategy(given: QueryDict, stored: Document) -> tuple[Document, list[Problem]]:
    """The strategy of a submitted form, and the problems found. Constraint rows keep all of their values."""
    name = given.get("name") or stored["name"]
    variants, problems = given_variants(given, stored.get("variants"))
    document = {
        **{field.member: field.entered(given) for field in FIELDS if field.entered},
        "name": name,
        "parameters": _given_parameters(given, name, stored.get("parameters") or {}),
        "constraints": given_constraints(given),
        "segments": [int(text) for text in given.getlist("segment") if text.isdecimal() and len(text) < 19],
        "variants": variants,
    }
    return document, problems


def _given_parameters(given: QueryDict, name: str, stored: Mapping[str, Any]) -> Document:
    """The stored parameters updated from the form. Parameters without an input keep their values.

    After a change of type, parameters with the same meaning keep the values entered for the previous type.
    """
    is_new_type = given.get("was-name", name) != name
    typed = _same_meaning(carried_parameters(given)) if is_new_type else _typed(given)
    parameters = dict(stored)
    for parameter, kind in parameter_kinds(name):
        if kind == "boolean" and not is_new_type:
            parameters[parameter] = "true" if parameter in typed else "false"
        else:
            text = typed.get(parameter, parameters.get(parameter, "") if is_new_type else "")
            parameters[parameter] = _list(text, parameters.get(parameter)) if kind == "list" else text
    return parameters


def _typed(given: QueryDict) -> dict[str, str]:
    return {name[2:]: given.get(name, "").strip() for name in given if name.startswith("p-")}


def carried_parameters(given: QueryDict) -> dict[str, str]:
    """The values entered so far for parameters of all types."""
    try:
        before = json.loads(given.get("carried", ""))
    except (ValueError, RecursionError):
        before = {}
    texts = {key: value for key, value in mapping_of(before).items() if isinstance(value, str)}
    return texts | _IMPLIED.get(given.get("was-name", ""), {}) | _typed(given)


def _same_meaning(typed: Mapping[str, str]) -> dict[str, str]:
    """Adds the percentage under its other name: types call it either ``rollout`` or ``percentage``."""
    renamed = {new: typed[old] for new, old in _OTHER_NAMES.items() if old in typed}
    return renamed | dict(typed)


def _list(text: str, stored: object) -> str:
    """The entered list as stored, separated by commas. Returns ``stored`` if the items are the same."""
    items = _items(text)
    return str(stored) if stored is not None and _items(str(stored)) == items else ",".join(items)


def _items(text: str) -> list[str]:
    return [item.strip() for item in re.split(r"[\n,]", text) if item.strip()]


def parameter_kinds(name: str) -> list[tuple[str, str]]:
    """(name, kind) of a strategy type's parameters, from its definition or else from the engine."""
    defined = StrategyType.objects.filter(pk=name).values_list("parameters", flat=True).first() or []
    kinds = [(item["name"], item["type"]) for item in defined]
    if not kinds and name in STRATEGIES:
        kinds = [(parameter, _BUILT_IN.get(parameter, "string")) for parameter in STRATEGIES[name].parameters]
    return [(parameter, _BUILT_IN.get(parameter, kind)) for parameter, kind in kinds]


_BUILT_IN = {
    "stickiness": "stickiness",
    "percentage": "percentage",
    "rollout": "percentage",
    "userIds": "list",
}
_OTHER_NAMES = {"rollout": "percentage", "percentage": "rollout"}
_IMPLIED = {
    "gradualRolloutUserId": {"stickiness": "userId"},
    "gradualRolloutSessionId": {"stickiness": "sessionId"},
    "gradualRolloutRandom": {"stickiness": "random"},
}
_LABELS = {
    "rollout": "Rollout percentage",
    "percentage": "Rollout percentage",
    "stickiness": "Stickiness",
    "groupId": "Group",
    "IPs": "Addresses and networks",
    "userIds": "User IDs",
    "hostNames": "Host names",
}
_HINTS = {
    "rollout": "Raising the percentage keeps everyone already included.",
    "stickiness": "Requests with the same value get the same result. Default: userId, else sessionId, else random.",
    "groupId": "Flags in the same group share buckets. Empty: the flag's name.",
}


def strategy_inputs(
    project_id: str, document: Document, *, stored: Document, problems: Iterable[Problem] = ()
) -> StrategyInputs:
    """The template context of a strategy. Problems are shown beside the inputs that their paths name."""
    by_place, by_parameter, others = sorted_problems(problems)
    sticky = stickiness_choices(project_id)
    kind = StrategyType.objects.filter(pk=document["name"]).first()
    selected = set(document["segments"])
    usable_segments = usable(Segment.objects.all(), project_id).order_by("name")
    variants = document["variants"]
    return StrategyInputs(
        document=document,
        type_title=(kind.title if kind else "") or document["name"],
        parameters=_parameters(document, sticky, by_parameter),
        constraints=constraint_rows(
            document["constraints"], ConstraintFields.of(project_id), by_place["constraints"]
        ),
        segments=[(segment, segment.pk in selected) for segment in usable_segments],
        variants=variant_rows(shared(variants, stored["variants"]), by_place["variants"]),
        variants_stickiness=variants[0].get("stickiness", "default") if variants else "default",
        stickiness=sticky,
        errors=others,
    )


def shared(variants: Sequence[Document], stored: Sequence[Document]) -> list[Document]:
    """The variants in the order of the form, with the weights that saving would give them."""
    weights = {item["name"]: item["weight"] for item in variants_document(variants, stored)}
    return [variant | {"weight": weights.get(variant["name"], variant["weight"])} for variant in variants]


def _parameters(
    document: Document, sticky: Sequence[str], errors: Mapping[str, Sequence[str]]
) -> list[Parameter]:
    found = []
    for name, kind in parameter_kinds(document["name"]):
        value = str(document["parameters"].get(name, ""))
        if kind == "list":
            value = "\n".join(_items(value))
        options = list(dict.fromkeys([*sticky, value or "default"])) if kind == "stickiness" else []
        found.append(
            Parameter(name, _LABELS.get(name, name), kind, value, _HINTS.get(name, ""), options, errors[name])
        )
    return found


def stickiness_choices(project_id: str) -> list[str]:
    """The built-in stickiness options, and the context fields that are enabled for stickiness."""
    fields = usable(ContextField.objects.filter(stickiness=True), project_id)
    return list(dict.fromkeys([*STICKINESS, *fields.order_by("name").values_list("name", flat=True)]))


def sorted_problems(
    problems: Iterable[Problem],
) -> tuple[dict[str, dict[int, list[str]]], dict[str, list[str]], list[str]]:
    """Messages of rows (``constraints[2].value``), of parameters (``parameters.rollout``), and all others."""
    rows: dict[str, dict[int, list[str]]] = {"constraints": defaultdict(list), "variants": defaultdict(list)}
    parameters: dict[str, list[str]] = defaultdict(list)
    others = []
    for problem in problems:
        if place := _PLACE.match(problem.path):
            rows[place[1]][int(place[2])].append(problem.message)
        elif problem.path.startswith("parameters."):
            parameters[problem.path.removeprefix("parameters.")].append(problem.message)
        else:
            others.append(problem.message)
    return rows, parameters, others


def was_left(problem: Problem, left: Collection[str]) -> bool:
    """Whether a problem is about one of ``left``, the names of the inputs that the user has filled in."""
    prefixes = _inputs(problem.path)
    return any(name.startswith(prefixes) for name in left)


def _inputs(path: str) -> tuple[str, ...]:
    """Prefixes of the input names for a path: ("c-2-val", "c-2-choice") for constraints[2].values."""
    if place := _PLACE.match(path):
        kind, number = place[1][0], place[2]
        if path.endswith((".contextName", ".name")):
            return (f"{kind}-{number}-field", f"{kind}-{number}-name")
        return (f"c-{number}-val", f"c-{number}-choice") if kind == "c" else (f"v-{number}-",)
    if path.startswith("parameters."):
        return (f"p-{path.removeprefix('parameters.')}",)
    return ("v-",) if path == "variants" else ("",)
