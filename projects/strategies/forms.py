"""Reads the strategy form, and prepares a strategy for its template."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from flagadmin.core.errors import Problem, ValidationError, clip
from flagadmin.core.http.fields import is_id
from flagadmin.core.http.json_bodies import parse_json
from playground.engine.definitions import StrategyDefinition, VariantDefinition
from playground.engine.literals import mapping_of
from playground.engine.strategy_types import PERCENTAGES, STRATEGY_TYPES, find_parameters, read_percentage
from projects.models import ContextField, Segment, StrategyType
from projects.strategies.constraint_forms import (
    MAX_OFFERED,
    ConstraintFields,
    ConstraintRow,
    make_constraint_rows,
    read_constraints,
)
from projects.strategies.fields import FIELDS
from projects.strategies.kept_values import LOST, by_reference, is_long, reference
from projects.strategies.rules import make_variants
from projects.strategies.variant_forms import VariantRows, make_variant_rows, read_variant_rows

SHOWN = 100  # shown characters of a long value
STICKINESS = ("default", "userId", "sessionId", "random")
_PLACE = re.compile(r"(constraints|variants)\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Parameter:
    """The input of a parameter. ``kind``: percentage, number, list, boolean, stickiness, string or kept.

    ``saved`` is the stored value, "" if nothing is stored. ``kept`` is the reference to a long one that is not in
    the form.
    """

    name: str
    label: str
    kind: str
    value: str
    saved: str
    kept: str
    hint: str
    options: Sequence[str]
    errors: Sequence[str]


def _read_share(text: str) -> int | None:
    share = read_percentage(text)
    return share if share is not None and share <= 100 else None


@dataclass(frozen=True, slots=True)
class StrategyInputs:
    """The template context of a strategy. ``errors`` belong to no input."""

    document: StrategyDefinition
    type_title: str
    parameters: Sequence[Parameter]
    constraints: Sequence[ConstraintRow]
    segments: Sequence[Segment]
    other_segments: Sequence[str]
    variants: VariantRows
    variants_stickiness: str
    stickiness: Sequence[str]
    errors: Sequence[str]

    @property
    def share(self) -> Parameter | None:
        """The percentage, which stands in the rule's sentence with the stickiness."""
        return next((parameter for parameter in self.parameters if parameter.kind == "percentage"), None)

    @property
    def stickiness_parameter(self) -> Parameter | None:
        return next((parameter for parameter in self.parameters if parameter.kind == "stickiness"), None)

    @property
    def other_parameters(self) -> list[Parameter]:
        kinds = ("percentage", "stickiness") if self.share else ()
        return [parameter for parameter in self.parameters if parameter.kind not in kinds]


def read_strategy(
    form: QueryDict, project_id: str, *, stored: StrategyDefinition, kept: StrategyDefinition
) -> tuple[StrategyDefinition, list[Problem]]:
    """The strategy of a submitted form, and the problems found. Constraint rows keep all of their values.

    ``kept`` is the strategy whose long values the form may refer to.
    """
    name = form.get("name") or stored["name"]
    variants, problems = read_variant_rows(form, kept.get("variants"))
    segments, unknown = _read_segments(form, project_id)
    parameters, lost = _read_parameters(
        form, name, stored.get("parameters") or {}, kept.get("parameters") or {}
    )
    document: Any = {
        **{field.member: field.entered(form) for field in FIELDS if field.entered},
        "name": name,
        "parameters": parameters,
        "constraints": read_constraints(form, kept.get("constraints")),
        "segments": segments,
        "variants": variants,
    }
    return document, [*problems, *unknown, *lost]


def _read_segments(form: QueryDict, project_id: str) -> tuple[list[int], list[Problem]]:
    """The ids of the segments that are still selected, and of the one whose name was entered."""
    ids = list(map(int, filter(is_id, form.getlist("segment"))))
    if not (name := form.get("segment-name", "").strip()):
        return ids, []
    segment_id = Segment.objects.usable_in(project_id).filter(name=name).values_list("pk", flat=True).first()
    if segment_id is None:
        return ids, [Problem("segments", f"segment {clip(name)} not found")]
    return list(dict.fromkeys([*ids, segment_id])), []


def _read_parameters(
    form: QueryDict, name: str, stored: Mapping[str, Any], kept: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Problem]]:
    """The stored parameters updated from the form. Parameters without an input keep their values.

    After a change of type, parameters with the same meaning keep the values entered for the previous type.
    """
    is_new_type = form.get("was-name", name) != name
    typed, lost = _look_up(carry_parameters(form) if is_new_type else _read_typed(form), kept)
    if is_new_type:
        typed = _add_same_meaning(typed)
    parameters = dict(stored)
    for parameter, kind in list_parameter_kinds(name):
        if kind == "boolean" and not is_new_type:
            parameters[parameter] = "true" if parameter in typed else "false"
        else:
            text = typed.get(parameter, parameters.get(parameter, "") if is_new_type else "")
            parameters[parameter] = _list(text, parameters.get(parameter)) if kind == "list" else text
    return parameters, lost


def _read_typed(form: QueryDict) -> dict[str, str]:
    """The entered parameters. ``kept-NAME`` is the reference to the long value of one."""
    return {name[2:]: form.get(name, "").strip() for name in form if name.startswith("p-")}


def _look_up(typed: Mapping[str, str], stored: Mapping[str, Any]) -> tuple[dict[str, str], list[Problem]]:
    """The parameters with stored values in place of references, and problems for changed ones."""
    values, lost = {}, []
    for name, text in typed.items():
        parameter = name.removeprefix("kept-")
        value = text if name == parameter else by_reference([stored.get(parameter)]).get(text)
        values[parameter] = "" if value is None else str(value)
        if value is None:
            lost.append(Problem(f"parameters.{parameter}", LOST))
    return values, lost


def carry_parameters(form: QueryDict) -> dict[str, str]:
    """The values entered so far for parameters of all types."""
    try:
        before = parse_json(form.get("carried", "").encode())
    except ValidationError:
        before = {}
    typed = _read_typed(form)
    replaced = {name.removeprefix("kept-") for name in typed}
    texts = {
        key: value
        for key, value in mapping_of(before).items()
        if isinstance(value, str) and key.removeprefix("kept-") not in replaced
    }
    was = STRATEGY_TYPES.get(form.get("was-name", ""))
    implied = {"stickiness": was.stickiness} if was and was.stickiness else {}
    return texts | implied | typed


def _add_same_meaning(typed: Mapping[str, str]) -> dict[str, str]:
    """Adds the percentage under its other name."""
    renamed = {name: typed[entered] for entered in PERCENTAGES if entered in typed for name in PERCENTAGES}
    return renamed | dict(typed)


def _list(text: str, stored: object) -> str:
    """The entered list as stored, separated by commas. Returns ``stored`` if the items are the same."""
    items = _split_items(text)
    return str(stored) if stored is not None and _split_items(str(stored)) == items else ",".join(items)


def _split_items(text: str) -> list[str]:
    return [item.strip() for item in re.split(r"[\n,]", text) if item.strip()]


def list_parameter_kinds(name: str) -> list[tuple[str, str]]:
    """Lists the (name, kind) of a strategy type's parameters, from its definition, or from the engine without one."""
    defined = StrategyType.objects.filter(pk=name).values_list("parameters", flat=True).first() or []
    kinds = [(item["name"], item["type"]) for item in defined]
    if not kinds and name in STRATEGY_TYPES:
        kinds = [(parameter.name, "string") for parameter in STRATEGY_TYPES[name].parameters]
    known = find_parameters()
    return [(each, (known[each].input if each in known else "") or kind) for each, kind in kinds]


def make_strategy_inputs(
    project_id: str,
    document: StrategyDefinition,
    *,
    stored: StrategyDefinition,
    kept: StrategyDefinition,
    problems: Iterable[Problem] = (),
    opened: str = "",
    is_new: bool = False,
) -> StrategyInputs:
    """The template context of a strategy. Shows problems beside the inputs that their paths name.

    ``is_new``: nothing is stored. ``kept`` is the strategy whose long values the form may refer to. ``opened`` is the
    parameter whose long value the user wants to edit.
    """
    by_place, by_parameter, others = sort_problems(problems)
    sticky = list_stickiness_choices(project_id)
    kind = StrategyType.objects.filter(pk=document["name"]).first()
    selected = Segment.objects.in_bulk(document["segments"])
    others_segments = Segment.objects.usable_in(project_id).exclude(pk__in=selected).order_by("name")
    variants = document["variants"]
    return StrategyInputs(
        document=document,
        type_title=(kind.title if kind else "") or document["name"],
        parameters=_make_parameter_inputs(
            document, kept["parameters"], sticky, by_parameter, opened, is_new=is_new
        ),
        constraints=make_constraint_rows(
            document["constraints"], ConstraintFields.of(project_id), by_place["constraints"]
        ),
        segments=[selected[pk] for pk in dict.fromkeys(document["segments"]) if pk in selected],
        other_segments=list(others_segments.values_list("name", flat=True)[:MAX_OFFERED]),
        variants=make_variant_rows(
            share_out_weights(variants, stored["variants"]), kept["variants"], by_place["variants"]
        ),
        variants_stickiness=variants[0].get("stickiness", "default") if variants else "default",
        stickiness=sticky,
        errors=others,
    )


def share_out_weights(
    variants: Sequence[VariantDefinition], stored: Sequence[VariantDefinition]
) -> list[VariantDefinition]:
    """The variants in the order of the form, with the weights after saving."""
    named = [
        variant | {"name": variant["name"] or f"\uffff{number:05}"} for number, variant in enumerate(variants)
    ]
    weights = {item["name"]: item["weight"] for item in make_variants(named, stored)}
    return [
        variant | {"weight": weights.get(known["name"], variant["weight"])}
        for variant, known in zip(variants, named, strict=True)
    ]


def keeps_everyone(stored: StrategyDefinition, edited: StrategyDefinition) -> bool:
    """Whether an edit at most raises the percentage, so that all included users stay included."""
    changed = {key for key in edited if key not in ("title", "variants") and edited[key] != stored.get(key)}  # type: ignore[literal-required]
    before, after = stored["parameters"], edited["parameters"]
    percentages = [
        (_read_share(str(before.get(name))), _read_share(str(after.get(name)))) for name in PERCENTAGES
    ]
    [(low, high)] = [pair for pair in percentages if pair != (None, None)] or [(None, None)]
    others = [{k: v for k, v in each.items() if k not in PERCENTAGES} for each in (before, after)]
    return (
        low is not None
        and high is not None
        and low < high
        and changed <= {"parameters"}
        and others[0] == others[1]
        and before.get("stickiness") != "random"
    )


def _make_parameter_inputs(
    document: StrategyDefinition,
    stored: Mapping[str, Any],
    sticky: Sequence[str],
    errors: Mapping[str, Sequence[str]],
    opened: str,
    *,
    is_new: bool,
) -> list[Parameter]:
    parameters, described = [], find_parameters()
    for name, kind in list_parameter_kinds(document["name"]):
        value, saved = str(document["parameters"].get(name, "")), str(stored.get(name, ""))
        known = described.get(name)
        reference_of_value = (
            reference(value) if value == saved and is_long([value]) and name != opened else ""
        )
        text = "\n".join(_split_items(value)) if kind == "list" else value
        parameters.append(
            Parameter(
                name=name,
                label=known.label if known else name,
                kind="kept" if reference_of_value else kind,
                value=f"{value[:SHOWN]}…" if reference_of_value else text,
                saved="" if is_new else saved,
                kept=reference_of_value,
                hint=known.hint if known else "",
                options=list(dict.fromkeys([*sticky, value or "default"])) if kind == "stickiness" else [],
                errors=errors[name],
            )
        )
    return parameters


def list_stickiness_choices(project_id: str) -> list[str]:
    """The built-in stickiness options, and the context fields that are enabled for stickiness."""
    fields = ContextField.objects.usable_in(project_id).filter(stickiness=True)
    return list(dict.fromkeys([*STICKINESS, *fields.order_by("name").values_list("name", flat=True)]))


def sort_problems(
    problems: Iterable[Problem],
) -> tuple[dict[str, dict[int, list[str]]], dict[str, list[str]], list[str]]:
    """Messages of rows (``constraints[2].value``), of parameters (``parameters.rollout``), and all others."""
    rows: dict[str, dict[int, list[str]]] = {"constraints": defaultdict(list), "variants": defaultdict(list)}
    parameters: dict[str, list[str]] = defaultdict(list)
    others = []
    for problem in problems:
        if match := _PLACE.match(problem.path):
            rows[match[1]][int(match[2])].append(problem.message)
        elif problem.path.startswith("parameters."):
            parameters[problem.path.removeprefix("parameters.")].append(problem.message)
        else:
            others.append(problem.message)
    return rows, parameters, others


def was_left(problem: Problem, left: Collection[str]) -> bool:
    """Whether a problem concerns one of ``left``, the names of the inputs that the user has filled in."""
    prefixes = _list_input_prefixes(problem.path)
    return any(name.startswith(prefixes) for name in left)


def _list_input_prefixes(path: str) -> tuple[str, ...]:
    """Prefixes of the input names for a path: ("c-2-val", "c-2-choice") for constraints[2].values."""
    if match := _PLACE.match(path):
        kind, number = match[1][0], match[2]
        if path.endswith((".contextName", ".name")):
            return (f"{kind}-{number}-field", f"{kind}-{number}-name")
        return (f"c-{number}-val", f"c-{number}-choice") if kind == "c" else (f"v-{number}-",)
    if path.startswith("parameters."):
        return (f"p-{path.removeprefix('parameters.')}",)
    return ("v-",) if path == "variants" else ("",)
