"""Reads and renders the variant rows of a form, with weights in percent. Inputs are named ``v-N-…``.

A form has rows for the first ``MAX_ROWS`` variants, and a reference ``v-rest`` to the stored others; ``v-N-kept``
refers to a long payload (``kept_values.py``).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from flagadmin.core.errors import Problem, clip
from playground.engine.literals import mapping_of, objects_of, to_text, weight_of
from projects.strategies.kept_values import LOST, by_reference, is_long, reference
from projects.strategies.rules import variants_problems
from projects.strategies.sentences import format_percent

NEW = {"name": "", "weight": 0, "weightType": "variable", "stickiness": "default", "was": "", "rest": False}
MAX_ROWS = 20
_BUTTON = re.compile(r"(remove-variant|show-payload)-(\d{1,4})")
SHOWN = 100  # shown characters of a long payload


@dataclass(frozen=True, slots=True)
class VariantRow:
    """A row of the form.

    ``was`` is the stored name, "" for a new variant; ``kept`` refers to a long payload, and ``payload`` is then its
    beginning; ``overrides`` describes stored overrides.
    """

    number: int
    name: str
    percent: str
    fixed: bool
    payload_type: str
    payload: str
    was: str
    kept: str
    overrides: str
    errors: Sequence[str]


@dataclass(frozen=True, slots=True)
class VariantRows:
    """The rows of a form. ``number`` stored variants have no row; ``reference`` represents them."""

    rows: Sequence[VariantRow]
    number: int
    reference: str
    weights: Mapping[str, float]
    errors: Sequence[str]

    def __bool__(self) -> bool:
        return bool(self.rows or self.number)


def read_variant_rows(form: QueryDict, stored: Any) -> tuple[list[Any], list[Problem]]:
    """The variants of a submitted form, and problems for percentages that are not valid."""
    before = {to_text(variant.get("name")): variant for variant in objects_of(stored)}
    variants, problems = [], []
    for index, number in enumerate(form.getlist("v")):
        prefix = f"v-{number}-"
        fixed = f"{prefix}fixed" in form or _is_typed(form, prefix)
        weight = (
            _read_weight(form.get(f"{prefix}percent", ""))
            if fixed
            else _read_stored_weight(form, prefix, before)
        )
        if weight is None:
            problems.append(Problem(f"variants[{index}].weight", "Enter a percentage from 0 to 100."))
        variant, is_lost = _read_variant(form, prefix, weight or 0, fixed, before)
        problems += [Problem(f"variants[{index}].payload", LOST)] if is_lost else []
        variants.append(variant)
    rest, is_lost = _find_rest(form, objects_of(stored))
    problems += [Problem("variants", LOST)] if is_lost else []
    return variants + rest, problems


def _find_rest(form: QueryDict, stored: Sequence[Mapping[str, Any]]) -> tuple[list[Any], bool]:
    """The stored variants without a row, and whether they have changed."""
    number, _, kept_reference = form.get("v-rest", "").partition(".")
    if not kept_reference:
        return [], False
    variants = stored[-int(number) :] if number.isdecimal() and 0 < len(number) < 9 else []
    if not variants or reference(variants) != kept_reference:
        return [], True
    stickiness = form.get("variants-stickiness") or "default"
    return [dict(v) | {"was": v["name"], "rest": True, "stickiness": stickiness} for v in variants], False


def change_variants(variants: list[Any], do: str) -> None:
    """Carries out a button of the rows."""
    rows = [variant for variant in variants if not variant.get("rest")]
    if do == "add-variant":
        variants.insert(len(rows), dict(NEW))
    elif do == "show-variants":
        for variant in variants[len(rows) : len(rows) + MAX_ROWS]:
            variant["rest"] = False
    elif (button := _BUTTON.fullmatch(do)) and int(button[2]) < len(rows):
        if button[1] == "remove-variant":
            del variants[int(button[2])]
        else:
            variants[int(button[2])]["open"] = True


def _read_variant(
    form: QueryDict, prefix: str, weight: int, fixed: bool, before: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, Any], bool]:
    """The variant, and whether its kept payload is missing."""
    variant: dict[str, Any] = {
        "name": form.get(f"{prefix}name", "").strip(),
        "weight": weight,
        "weightType": "fix" if fixed else "variable",
        "stickiness": form.get("variants-stickiness") or "default",
        "was": form.get(f"{prefix}was", ""),
        "rest": False,
    }
    text: str | None = form.get(f"{prefix}payload", "")
    if kept_reference := form.get(f"{prefix}kept"):
        payloads = (mapping_of(other.get("payload")).get("value") for other in before.values())
        text = by_reference(payloads).get(kept_reference)
    else:
        variant["open"] = True
    if kind := form.get(f"{prefix}payload-type"):
        variant["payload"] = {"type": kind, "value": text or ""}
    if overrides := before.get(variant["was"], {}).get("overrides"):
        variant["overrides"] = overrides
    return variant, text is None


def _is_typed(form: QueryDict, prefix: str) -> bool:
    """Whether the weight was edited; edited values are saved as entered."""
    typed = form.get(f"{prefix}percent", "")
    return typed != form.get(f"{prefix}shown", typed)


def _read_stored_weight(form: QueryDict, prefix: str, before: Mapping[str, Mapping[str, Any]]) -> int:
    """The stored weight of a variable variant, so that unchanged variants are recognized."""
    return weight_of(before.get(form.get(f"{prefix}was", ""), {}).get("weight"))


def _read_weight(text: str) -> int | None:
    """A percentage as a weight out of 1000, or None if it is not valid."""
    try:
        share = float(text.replace(",", "."))
    except ValueError:
        return None
    return round(share * 10) if 0 <= share <= 100 else None


def convert_to_percent(problems: Iterable[Problem], variants: Sequence[Mapping[str, Any]]) -> list[Problem]:
    """The problems of an action, with percentages instead of weights, as in the form."""
    others = [problem for problem in problems if not problem.path.startswith("variants")]
    return [*others, *variants_problems(variants, "variants", in_percent=True)]


def make_variant_rows(
    variants: Any, stored: Any, errors: Mapping[int, Sequence[str]] | None = None
) -> VariantRows:
    """Rows for the template, from stored or submitted variants. ``errors`` are keyed by row index."""
    variant_list, row_errors = objects_of(variants), errors or {}
    rows, rest = [], []
    for number, variant in enumerate(variant_list):
        if variant.get("rest", number >= MAX_ROWS):
            rest.append(number)
        else:
            rows.append(_make_row(number, variant, row_errors.get(number, ())))
    weights: dict[str, float] = {}
    for position, row in enumerate(rows, 1):
        name = row.name if row.name and row.name not in weights else f"variant {position}"
        weights[name] = weight_of(variant_list[row.number].get("weight"))
    others = {f"{len(rest):,} more": sum(weight_of(variant_list[number].get("weight")) for number in rest)}
    return VariantRows(
        rows=rows,
        number=len(rest),
        reference=f"{len(rest)}.{reference(objects_of(stored)[-len(rest) :])}" if rest else "",
        weights=weights | others if rest else weights,
        errors=[text for number in rest for text in row_errors.get(number, ())],
    )


def _make_row(number: int, variant: Mapping[str, Any], errors: Sequence[str]) -> VariantRow:
    payload = mapping_of(variant.get("payload"))
    name, text = to_text(variant.get("name")), to_text(payload.get("value"))
    is_hidden = is_long([text]) and not variant.get("open")
    return VariantRow(
        number=number,
        name=name,
        percent=format_percent(weight_of(variant.get("weight"))),
        fixed=variant.get("weightType") == "fix",
        payload_type=to_text(payload.get("type")),
        payload=f"{text[:SHOWN]}…" if is_hidden else text,
        was=to_text(variant["was"]) if "was" in variant else name,
        kept=reference(text) if is_hidden else "",
        overrides=clip("; ".join(_override(item) for item in objects_of(variant.get("overrides"))), 200),
        errors=errors,
    )


def _override(override: Mapping[str, Any]) -> str:
    return f"{to_text(override.get('contextName'))} {', '.join(map(str, override.get('values') or []))}"
