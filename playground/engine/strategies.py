"""Compiles activation strategies: the built-in types, their parameters and rollouts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from sys import intern
from typing import Any

from playground.engine import operators, sentences
from playground.engine.coercion import items_of, parameters_of, string_of, text_of, trimmed
from playground.engine.constraints import CompiledConstraint, Conditions, Constraints, unquotable
from playground.engine.context import Columns
from playground.engine.hashing import hash_key
from playground.engine.sharing import Shared
from playground.engine.variants import CompiledVariants, compile_strategy_variants


@dataclass(frozen=True, slots=True)
class StrategyType:
    """A built-in strategy type. `evaluated`: a server can evaluate it, not only an SDK."""

    name: str
    parameters: tuple[str, ...] = ()
    evaluated: bool = True


STRATEGIES: dict[str, StrategyType] = {
    kind.name: kind
    for kind in (
        StrategyType("default"),
        StrategyType("userWithId", ("userIds",)),
        StrategyType("flexibleRollout", ("rollout", "stickiness", "groupId")),
        StrategyType("gradualRolloutUserId", ("percentage", "groupId")),
        StrategyType("gradualRolloutSessionId", ("percentage", "groupId")),
        StrategyType("gradualRolloutRandom", ("percentage",)),
        StrategyType("remoteAddress", ("IPs",)),
        StrategyType("applicationHostname", ("hostNames",), evaluated=False),
    )
}


class Mode(Enum):
    """What decides a strategy. OPEN: its conditions and its rollout."""

    OPEN = "open"
    NEVER = "never"
    ONLY_SDK = "only an SDK"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class Rollout:
    """A percentage rollout: identifiers in buckets 1 to `threshold` of 100 are in.

    `draws`: without an identifier the bucket is drawn at random; if false, the strategy is off then.
    """

    threshold: int
    stickiness: str
    column: int
    key: bytes
    draws: bool


@dataclass(frozen=True, slots=True)
class CompiledStrategy:
    """A compiled strategy.

    `conditions` are the stored constraints, followed by the strategy's own for userWithId and remoteAddress. `all_hold`
    are their bits if all hold; -1, which is never reached, if a segment does not exist. `rollout` is None if there is
    no bucket to compute. `note` says why the strategy is never on, or why only an SDK can evaluate it.
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
    kind = STRATEGIES.get(name)
    disabled = bool(document.get("disabled"))
    evaluated = kind is not None and kind.evaluated
    columns = compiler.columns
    constraints = compiler.compile_all(document.get("constraints"))
    own = _own_condition(name, parameters, columns)
    if own is not None:
        constraints.append(own)
    conditions = compiler.together(constraints)
    rollout = _rollout(name, parameters, flag, columns, compiler.shared)
    note = _note(name, parameters) if evaluated else _only_sdk(name)
    found, missing = _segments(document.get("segments"), segments)
    mode = _mode(evaluated=evaluated, disabled=disabled, never=bool(note))
    return CompiledStrategy(
        id=text_of(document.get("id")),
        name=intern(name),
        title=text_of(document.get("title")),
        mode=mode,
        counts=not disabled,
        conditions=conditions,
        all_hold=-1 if missing else conditions.all_hold,
        segments=found,
        missing_segments=missing,
        rollout=rollout if mode is Mode.OPEN else None,
        variants=compile_strategy_variants(
            document.get("variants"), parameters, flag, columns, compiler.shared
        )
        if evaluated and not disabled
        else None,
        note=note,
        fault=None if disabled else _fault(constraints, missing, None if note else rollout),
    )


def _mode(*, evaluated: bool, disabled: bool, never: bool) -> Mode:
    if not evaluated:
        return Mode.ONLY_SDK
    if disabled:
        return Mode.DISABLED
    return Mode.NEVER if never else Mode.OPEN


def _only_sdk(name: str) -> str:
    return sentences.host_strategy() if name == "applicationHostname" else sentences.custom_strategy(name)


def _segments(ids: object, segments: Mapping[str, int]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions of the segments, each once, and the ids of those that do not exist."""
    unique = list(dict.fromkeys(text_of(segment) for segment in items_of(ids)))
    found = tuple(segments[segment] for segment in unique if segment in segments)
    return found, tuple(segment for segment in unique if segment not in segments)


def _fault(
    constraints: list[CompiledConstraint], missing: tuple[str, ...], rollout: Rollout | None
) -> str | None:
    """What SDKs cannot read in a strategy, so that the flag is off."""
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


def _own_condition(name: str, parameters: Mapping[str, str], columns: Columns) -> CompiledConstraint | None:
    """The condition of userWithId and remoteAddress."""
    if name == "userWithId" and "userIds" in parameters:
        text = parameters["userIds"]
        ids = [trimmed(part) for part in text.split(",")]
        fault = (
            "userIds hold a value that ends in a backslash" if any(i.endswith("\\") for i in ids) else None
        )
        return _condition("userId", "text", frozenset(ids).__contains__, ids, "one of", fault, columns)
    if name == "remoteAddress" and "IPs" in parameters:
        text = parameters["IPs"]
        networks = [trimmed(part) for part in text.split(",")]
        fault = "the IPs cannot be read by SDKs" if unquotable(text) else None
        test = operators.network_test(networks)
        return _condition("remoteAddress", "address", test, networks, "an IP address in", fault, columns)
    return None


def _condition(
    field: str,
    form: str,
    test: operators.Test,
    values: list[str],
    among: str,
    fault: str | None,
    columns: Columns,
) -> CompiledConstraint:
    need = f", needs {among} {sentences.listed(values)}"
    return CompiledConstraint(field, "", columns.position(form, field), test, False, need, "", fault)


_WHOLE_NUMBER = re.compile(r"\+?[0-9]{1,18}", re.ASCII)


def _rollout(
    name: str, parameters: Mapping[str, str], flag: str, columns: Columns, shared: Shared
) -> Rollout | None:
    if name == "flexibleRollout":
        stickiness = intern(parameters.get("stickiness", "default"))
        draws = stickiness in ("default", "random")
        form = "never" if stickiness == "random" else "identifier"
        key = shared(hash_key(parameters.get("groupId", flag)))
        return Rollout(
            _percentage(parameters, "rollout"), stickiness, columns.position(form, stickiness), key, draws
        )
    if name in ("gradualRolloutUserId", "gradualRolloutSessionId"):
        stickiness = "userId" if name == "gradualRolloutUserId" else "sessionId"
        key = shared(hash_key(parameters.get("groupId", "")))
        column = columns.position("identifier", stickiness)
        return Rollout(_percentage(parameters, "percentage"), stickiness, column, key, False)
    if name == "gradualRolloutRandom":
        column = columns.position("never", "random")
        return Rollout(_percentage(parameters, "percentage"), "random", column, b"", True)
    return None


def _percentage(parameters: Mapping[str, str], name: str) -> int:
    """A percentage; 0 if it is not a whole number, as in SDKs."""
    text = parameters.get(name, "")
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else 0


def _note(name: str, parameters: Mapping[str, str]) -> str:
    """Why a strategy of a built-in type is never on, "" if it can be on."""
    if name == "userWithId" and "userIds" not in parameters:
        return "The strategy names no userIds, so it is off"
    if name == "remoteAddress" and "IPs" not in parameters:
        return "The strategy names no IPs, so it is off"
    percentage = "rollout" if name == "flexibleRollout" else "percentage"
    if percentage in STRATEGIES[name].parameters and not _WHOLE_NUMBER.fullmatch(
        parameters.get(percentage, "")
    ):
        stored = parameters.get(percentage)
        if stored is None:
            return f"The strategy has no {percentage}, so it is off"
        return f"The {percentage} {sentences.quoted(stored)} is not a whole number, so it is off"
    if name in ("gradualRolloutUserId", "gradualRolloutSessionId") and "groupId" not in parameters:
        return "The strategy has no groupId, so it is off"
    return ""
