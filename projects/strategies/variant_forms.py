"""Reads and renders the variant rows of a form, with weights in percent. Inputs are named ``v-N-…``."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from flagadmin.errors import Problem
from playground.engine.coercion import mapping_of, objects_of, text_of, weight_of
from projects.sentences import percent
from projects.strategies.variant_rules import variants_problems

Document = dict[str, Any]
NEW = {"name": "", "weight": 0, "weightType": "variable", "stickiness": "default", "was": ""}


@dataclass(frozen=True, slots=True)
class VariantRow:
    """A row of the form.

    ``was`` is the stored name, "" for a new variant; ``kept`` describes stored overrides.
    """

    number: int
    name: str
    percent: str
    fixed: bool
    payload_type: str
    payload: str
    was: str
    kept: str
    errors: Sequence[str]


def given_variants(given: QueryDict, stored: Any) -> tuple[list[Document], list[Problem]]:
    """The variants of a submitted form, and problems for percentages that are not valid."""
    before = {text_of(variant.get("name")): variant for variant in objects_of(stored)}
    found, problems = [], []
    for index, number in enumerate(given.getlist("v")):
        prefix = f"v-{number}-"
        fixed = f"{prefix}fixed" in given
        weight = (
            _weight(given.get(f"{prefix}percent", "")) if fixed else _stored_weight(given, prefix, before)
        )
        if weight is None:
            problems.append(Problem(f"variants[{index}].weight", "Enter a percentage from 0 to 100."))
        found.append(_variant(given, prefix, weight or 0, fixed, before))
    return found, problems


def _variant(
    given: QueryDict, prefix: str, weight: int, fixed: bool, before: Mapping[str, Mapping[str, Any]]
) -> Document:
    variant: Document = {
        "name": given.get(f"{prefix}name", "").strip(),
        "weight": weight,
        "weightType": "fix" if fixed else "variable",
        "stickiness": given.get("variants-stickiness") or "default",
        "was": given.get(f"{prefix}was", ""),
    }
    if kind := given.get(f"{prefix}payload-type"):
        variant["payload"] = {"type": kind, "value": given.get(f"{prefix}payload", "")}
    if overrides := before.get(variant["was"], {}).get("overrides"):
        variant["overrides"] = overrides
    return variant


def _stored_weight(given: QueryDict, prefix: str, before: Mapping[str, Mapping[str, Any]]) -> int:
    """The stored weight of a variable variant, so that unchanged variants are recognised as such."""
    return weight_of(before.get(given.get(f"{prefix}was", ""), {}).get("weight"))


def _weight(text: str) -> int | None:
    """A percentage as a weight out of 1000, or None if it is not valid."""
    try:
        share = float(text.replace(",", "."))
    except ValueError:
        return None
    return round(share * 10) if 0 <= share <= 100 else None


def in_percent(problems: Iterable[Problem], variants: Sequence[Document]) -> list[Problem]:
    """The problems of an action, with weights of variants replaced by percentages as in the form."""
    others = [problem for problem in problems if not problem.path.startswith("variants")]
    return [*others, *variants_problems(variants, "variants", in_percent=True)]


def variant_rows(variants: Any, errors: Mapping[int, Sequence[str]] | None = None) -> list[VariantRow]:
    """Rows for the template, from stored or submitted variants. ``errors`` are keyed by row index."""
    return [
        _row(number, variant, (errors or {}).get(number, ()))
        for number, variant in enumerate(objects_of(variants))
    ]


def _row(number: int, variant: Mapping[str, Any], errors: Sequence[str]) -> VariantRow:
    payload = mapping_of(variant.get("payload"))
    name = text_of(variant.get("name"))
    return VariantRow(
        number=number,
        name=name,
        percent=percent(weight_of(variant.get("weight"))),
        fixed=variant.get("weightType") == "fix",
        payload_type=text_of(payload.get("type")),
        payload=text_of(payload.get("value")),
        was=text_of(variant["was"]) if "was" in variant else name,
        kept="; ".join(_override(item) for item in objects_of(variant.get("overrides"))),
        errors=errors,
    )


def _override(override: Mapping[str, Any]) -> str:
    return f"{text_of(override.get('contextName'))} {', '.join(map(str, override.get('values') or []))}"
