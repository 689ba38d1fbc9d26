"""The form of a strategy: from what was stored or sent to what the template shows and the action takes."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from flagadmin.errors import Problem
from playground.engine.strategies import STRATEGIES
from projects.models import ContextField, Segment, StrategyType
from projects.pages.constraint_rows import ConstraintRow, Words, constraint_rows, given_constraints
from projects.pages.variant_rows import VariantRow, given_variants, variant_rows
from projects.validation import variants_document
from projects.validation.vocabulary import usable

Document = dict[str, Any]
STICKINESS = ("default", "userId", "sessionId", "random")
_PLACE = re.compile(r"(constraints|variants)\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Parameter:
    """An input of the strategy's own. ``kind``: percentage, number, list, boolean, stickiness or string."""

    name: str
    label: str
    kind: str
    value: str
    hint: str
    options: Sequence[str]
    errors: Sequence[str]


@dataclass(frozen=True, slots=True)
class StrategyInputs:
    """All that the template shows of a strategy; ``errors`` are those that belong to no input."""

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
    """What a sent form makes of a stored strategy: rows of constraints still with all they hold."""
    name = given.get("name") or stored["name"]
    variants, problems = given_variants(given, stored.get("variants"))
    document = {
        "name": name,
        "title": given.get("title", "").strip() or None,
        "disabled": "disabled" in given,
        "parameters": _given_parameters(given, name, stored.get("parameters") or {}),
        "constraints": given_constraints(given),
        "segments": [int(text) for text in given.getlist("segment") if text.isdecimal() and len(text) < 19],
        "variants": variants,
    }
    return document, problems


def _given_parameters(given: QueryDict, name: str, stored: Mapping[str, Any]) -> Document:
    """The stored parameters with those that the form has; ones that it does not know stay."""
    parameters = dict(stored) if name == given.get("was-name", name) else {}
    for parameter, kind in parameter_kinds(name):
        text = given.get(f"p-{parameter}", "").strip()
        if kind == "list":
            text = ",".join(line.strip() for line in re.split(r"[\n,]", text) if line.strip())
        elif kind == "boolean":
            text = "true" if f"p-{parameter}" in given else "false"
        parameters[parameter] = text
    return parameters


def parameter_kinds(name: str) -> list[tuple[str, str]]:
    """(name, kind) of what a strategy type takes, as its definition says; of our own where it says nothing."""
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
_LABELS = {
    "rollout": "Rollout in %",
    "percentage": "Rollout in %",
    "stickiness": "By",
    "groupId": "Group",
    "IPs": "Addresses and networks",
    "userIds": "User ids",
    "hostNames": "Host names",
}
_HINTS = {
    "rollout": "Who is in stays in while it grows.",
    "stickiness": "Everything with the same value gets the same result; default is userId, else sessionId.",
    "groupId": "Flags of one group share buckets. Empty: the name of the flag.",
}


def strategy_inputs(
    project_id: str, document: Document, *, stored: Document, problems: Iterable[Problem] = ()
) -> StrategyInputs:
    """``problems`` stand beside what their paths name."""
    by_place, by_parameter, others = sorted_problems(problems)
    sticky = stickiness_choices(project_id)
    kind = StrategyType.objects.filter(pk=document["name"]).first()
    chosen = set(document["segments"])
    usable_segments = usable(Segment.objects.all(), project_id).order_by("name")
    variants = document["variants"]
    return StrategyInputs(
        document=document,
        type_title=(kind.title if kind else "") or document["name"],
        parameters=_parameters(document, sticky, by_parameter),
        constraints=constraint_rows(document["constraints"], Words.of(project_id), by_place["constraints"]),
        segments=[(segment, segment.pk in chosen) for segment in usable_segments],
        variants=variant_rows(shared(variants, stored["variants"]), by_place["variants"]),
        variants_stickiness=variants[0].get("stickiness", "default") if variants else "default",
        stickiness=sticky,
        errors=others,
    )


def shared(variants: Sequence[Document], stored: Sequence[Document]) -> list[Document]:
    """The variants in their order, with the weights that they will have."""
    weights = {item["name"]: item["weight"] for item in variants_document(variants, stored)}
    return [variant | {"weight": weights.get(variant["name"], variant["weight"])} for variant in variants]


def _parameters(
    document: Document, sticky: Sequence[str], errors: Mapping[str, Sequence[str]]
) -> list[Parameter]:
    found = []
    for name, kind in parameter_kinds(document["name"]):
        value = str(document["parameters"].get(name, ""))
        if kind == "list":
            value = "\n".join(item.strip() for item in value.split(",") if item.strip())
        options = list(dict.fromkeys([*sticky, value or "default"])) if kind == "stickiness" else []
        found.append(
            Parameter(name, _LABELS.get(name, name), kind, value, _HINTS.get(name, ""), options, errors[name])
        )
    return found


def stickiness_choices(project_id: str) -> list[str]:
    """What every SDK keeps results by, and the context fields that are marked for it."""
    fields = usable(ContextField.objects.filter(stickiness=True), project_id)
    return list(dict.fromkeys([*STICKINESS, *fields.order_by("name").values_list("name", flat=True)]))


def sorted_problems(
    problems: Iterable[Problem],
) -> tuple[dict[str, dict[int, list[str]]], dict[str, list[str]], list[str]]:
    """Problems of rows (``constraints[2].value``), of parameters (``parameters.rollout``), and the others."""
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
