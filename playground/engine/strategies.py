"""Compiles activation strategies with their conditions and rollouts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from sys import intern
from typing import Any

from playground.engine import sentences
from playground.engine.constraints import (
    CompiledConstraint,
    Conditions,
    Constraints,
    Shared,
    bind_list,
    unquotable,
)
from playground.engine.context import Columns
from playground.engine.hashing import hash_key
from playground.engine.literals import items_of, mapping_of, parameters_of, string_of, to_text
from playground.engine.operators import OPERATORS, SET
from playground.engine.strategy_types import GROUP_ID, STRATEGY_TYPES, StrategyType, read_percentage
from playground.engine.variants import CompiledVariants, compile_strategy_variants


class Mode(Enum):
    """How a strategy is decided. OPEN: by its conditions and its rollout."""

    OPEN = "open"
    NEVER = "never"
    ONLY_SDK = "only an SDK"
    DISABLED = "disabled"


@dataclass(
    slots=True
)  # read in half the time of a named tuple, and not frozen, which would make creation slow
class Rollout:
    """A percentage rollout: identifiers in buckets 1 to `threshold` of 100 are in.

    `draws`: without an identifier the bucket is drawn at random; if false, the strategy is off in that case.
    """

    threshold: int
    stickiness: str
    column: int
    key: bytes
    draws: bool


@dataclass(slots=True)
class CompiledStrategy:
    """A compiled strategy.

    `conditions` are the stored constraints, followed by the strategy's own for userWithId and remoteAddress.
    `all_hold` has their bits set; -1, which is never reached, if a segment does not exist. `rollout` is None if there
    is no bucket to compute. `note` is the reason why the strategy is never on, or why only an SDK can evaluate it.
    """

    id: str
    name: str
    title: str
    mode: Mode
    counts: bool
    conditions: Conditions
    all_hold: int
    segments: tuple[int, ...]
    missing_segments: tuple[str, ...]
    rollout: Rollout | None
    variants: CompiledVariants | None
    note: str
    fault: str | None

    @property
    def constraints(self) -> tuple[CompiledConstraint, ...]:
        return self.conditions.constraints


def compile_strategy(
    document: Mapping[str, Any], flag: str, segments: Mapping[str, int], compiler: Constraints
) -> CompiledStrategy:
    """Compiles one stored strategy of a flag. `segments` maps ids to positions. Never raises."""
    name = string_of(document.get("name")) or ""
    parameters = parameters_of(document.get("parameters"))
    kind = STRATEGY_TYPES.get(name)
    disabled = bool(document.get("disabled"))
    columns = compiler.columns
    constraints = compiler.compile_all(document.get("constraints"))
    rollout = None
    if kind is None:
        evaluated, note = False, sentences.custom_strategy(name)
    else:
        constraints += _compile_own_condition(kind, parameters, columns)
        rollout = _compile_rollout(kind, parameters, flag, columns, compiler.shared)
        evaluated = kind.is_evaluated
        note = _note(kind, parameters) if evaluated else sentences.host_strategy()
    conditions = compiler.together(constraints)
    segment_positions, missing = _find_segments(document.get("segments"), segments)
    mode = _choose_mode(evaluated=evaluated, disabled=disabled, never=bool(note))
    return CompiledStrategy(
        id=to_text(document.get("id")),
        name=intern(name),
        title=to_text(document.get("title")),
        mode=mode,
        counts=not disabled,
        conditions=conditions,
        all_hold=-1 if missing else conditions.all_hold,
        segments=segment_positions,
        missing_segments=missing,
        rollout=rollout if mode is Mode.OPEN else None,
        variants=compile_strategy_variants(
            document.get("variants"), parameters, flag, columns, compiler.shared
        )
        if evaluated and not disabled
        else None,
        note=note,
        fault=None if disabled else _find_fault(constraints, missing, None if note else rollout),
    )


def take_out_percentage(document: Mapping[str, Any]) -> tuple[Mapping[str, Any], object]:
    """A stored strategy without its percentage, and the stored percentage; None if it has none."""
    kind = STRATEGY_TYPES.get(string_of(document.get("name")) or "")
    parameters = mapping_of(document.get("parameters"))
    if kind is None or parameters.get(kind.percentage) is None:
        return document, None
    others = {name: value for name, value in parameters.items() if name != kind.percentage}
    return {**document, "parameters": others}, parameters[kind.percentage]


def change_percentage(strategy: CompiledStrategy, document: Mapping[str, Any]) -> CompiledStrategy | None:
    """The strategy with the percentage of a document that is otherwise equal; None if it must be compiled."""
    if strategy.rollout is None or strategy.fault:
        return None
    percentage = mapping_of(document.get("parameters")).get(STRATEGY_TYPES[strategy.name].percentage)
    threshold = read_percentage(to_text(percentage))
    if threshold is None or threshold > 100:
        return None
    return replace(strategy, rollout=replace(strategy.rollout, threshold=threshold))


def _choose_mode(*, evaluated: bool, disabled: bool, never: bool) -> Mode:
    if not evaluated:
        return Mode.ONLY_SDK
    if disabled:
        return Mode.DISABLED
    return Mode.NEVER if never else Mode.OPEN


def _find_segments(ids: object, segments: Mapping[str, int]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions of the segments, without duplicates, and the ids of missing ones."""
    unique = list(dict.fromkeys(to_text(segment) for segment in items_of(ids)))
    positions = tuple(segments[segment] for segment in unique if segment in segments)
    return positions, tuple(segment for segment in unique if segment not in segments)


def _find_fault(
    constraints: list[CompiledConstraint], missing: tuple[str, ...], rollout: Rollout | None
) -> str | None:
    """The part of a strategy that SDKs cannot read, which turns the flag off."""
    for constraint in constraints:
        if constraint.fault is not None:
            return constraint.fault
    if missing:
        return f"segment {missing[0]} does not exist"
    if rollout is not None:
        if rollout.threshold > 100 and rollout.key:
            return f"the rollout {rollout.threshold} is above 100 %"
        if unquotable(rollout.stickiness) or unquotable(rollout.key.decode()[:-1]):
            return "the stickiness or groupId cannot be read by SDKs"
    return None


def _compile_own_condition(
    kind: StrategyType, parameters: Mapping[str, str], columns: Columns
) -> list[CompiledConstraint]:
    """The condition of a type that lists values of a field; none for other types, or without the parameter."""
    values = kind.values(parameters)
    if values is None:
        return []
    operator = OPERATORS[kind.operator]
    form, test, fault, _ = bind_list(operator, values)
    if operator.family is SET:
        fault = f"{kind.lists} hold a value that ends in a backslash" if fault else None
    else:
        fault = f"the {kind.lists} cannot be read by SDKs" if unquotable(parameters[kind.lists]) else None
    need = sentences.unmet_phrase(kind.operator, values, inverted=False)
    column = columns.position(form, kind.field)
    return [CompiledConstraint(kind.field, "", column, test, False, need, "", fault)]


def _compile_rollout(
    kind: StrategyType, parameters: Mapping[str, str], flag: str, columns: Columns, shared: Shared
) -> Rollout | None:
    if not kind.percentage:
        return None
    stickiness = kind.stickiness or intern(parameters.get("stickiness", "default"))
    key = b""
    if GROUP_ID in kind.parameters:
        key = shared(hash_key(parameters.get(GROUP_ID.name, "" if kind.stickiness else flag)))
    return Rollout(
        threshold=kind.threshold(parameters),
        stickiness=stickiness,
        column=columns.position("never" if stickiness == "random" else "identifier", stickiness),
        key=key,
        draws=stickiness in ("default", "random"),
    )


def _note(kind: StrategyType, parameters: Mapping[str, str]) -> str:
    """Explains why a strategy is never on; "" if it can be on."""
    if kind.lists and kind.lists not in parameters:
        return f"The strategy names no {kind.lists}, so it is off"
    if not kind.percentage:
        return ""
    stored = parameters.get(kind.percentage)
    if stored is None:
        return f"The strategy has no {kind.percentage}, so it is off"
    if read_percentage(stored) is None:
        return f"The {kind.percentage} {sentences.quote_value(stored)} is not a whole number, so it is off"
    if kind.stickiness and GROUP_ID in kind.parameters and GROUP_ID.name not in parameters:
        return "The strategy has no groupId, so it is off"
    return ""
