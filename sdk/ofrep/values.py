"""The value of a flag for OpenFeature: whether it is on, or the payload of its variant in the payload's type."""

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from flagadmin.core.errors import ValidationError
from playground.engine.coercion import mapping_of, to_text
from playground.engine.flags import CompiledFlag
from playground.engine.outcomes import PICK, PLACE, FlagOutcome
from playground.engine.variants import NONE, CompiledVariants
from playground.response.fragments import FlagFragments

_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)


class Choice(NamedTuple):
    """The variant of a flag: which of these it is, and its place among their weights (0: an override decided)."""

    variants: CompiledVariants
    pick: int
    place: int

    @property
    def name(self) -> str:
        return self.variants.names[self.pick]

    @property
    def is_by_weight(self) -> bool:
        return self.place > 0 and self.variants.divides


def find_choice(flag: CompiledFlag, outcome: FlagOutcome) -> Choice | None:
    """The variant that the context gets, None if it gets none."""
    if not outcome.on:
        return None
    if outcome.decided != NONE:
        variants, strategy_outcome = (
            flag.strategies[outcome.decided].variants,
            outcome.strategies[outcome.decided],
        )
        if variants is not None and strategy_outcome[PICK] != NONE:
            return Choice(variants, strategy_outcome[PICK], strategy_outcome[PLACE])
    if flag.variants is None or outcome.pick == NONE:
        return None
    return Choice(flag.variants, outcome.pick, outcome.place)


def read_value(outcome: FlagOutcome, fragments: FlagFragments) -> Any:
    """The payload, or without one whether the flag is on. Raises ValidationError for a payload not of its type."""
    if not (outcome.on and fragments.has_payloads):
        return outcome.on
    if outcome.decided != NONE and (pick := outcome.strategies[outcome.decided][PICK]) != NONE:
        variant = fragments.strategies[outcome.decided].variant(pick)
    elif outcome.pick != NONE:
        variant = fragments.picks[outcome.pick]
    else:
        return True
    return _read_variant(variant)


def _read_variant(variant: bytes) -> Any:
    """The value of a variant, which is written without its last brace."""
    payload = orjson.loads(variant + b"}").get("payload")
    return parse_payload(mapping_of(payload)) if payload else True


def parse_payload(payload: Mapping[str, Any]) -> Any:
    """The value of a payload ``{type, value}``. JSON and numbers stand in the answer as they are stored: 10.0 has a
    decimal point and 10 has none, and no digit is lost.

    Raises ValidationError for a payload that is not of its type.
    """
    kind, text = payload.get("type"), to_text(payload.get("value"))
    if kind == "json":
        return _parse_json(text)
    return _parse_number(text) if kind == "number" else text


def _parse_json(text: str) -> orjson.Fragment:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValidationError(f"The payload of the variant is not JSON: {error}.") from error
    return orjson.Fragment(text)


def _parse_number(text: str) -> Any:
    text = text.strip()
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValidationError("The payload of the variant is not a number.")
    return orjson.Fragment(text) if _JSON_NUMBER.fullmatch(text) else number
