"""Converts the playground engine's results to those of an SDK, for comparison."""

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from playground.engine.compilation import compile_snapshot
from playground.engine.context import Context
from playground.engine.evaluator import Evaluation, evaluate
from playground.engine.snapshot import Snapshot
from playground.response.snapshot import ResponseSnapshot

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


def compiled(state: Mapping[str, Any]) -> Snapshot:
    """A snapshot of a client specification's `state`."""
    segments = {segment["id"]: segment for segment in state.get("segments") or []}
    return compile_snapshot(state["features"], segments, environment="development")


def total_size(snapshot: ResponseSnapshot) -> int:
    """The estimated memory of a snapshot that shares nothing with others, in bytes."""
    return snapshot.nbytes + sum(piece.nbytes for piece in snapshot.pieces.values())


def evaluated(
    snapshot: Snapshot, context: Mapping[str, Any], *, seed: int = 0, now: datetime = NOW
) -> Evaluation:
    return evaluate(snapshot, Context(context), now=now, random=random.Random(seed).random)


def is_enabled(evaluation: Evaluation, name: str) -> bool:
    """The result of an SDK's isEnabled. An unknown flag is off."""
    if name not in evaluation.snapshot.positions:
        return False
    return evaluation.pair(name)[1].on


def variant(evaluation: Evaluation, name: str) -> str:
    """The name of the variant an SDK returns, "disabled" if there is none."""
    if name not in evaluation.snapshot.positions:
        return "disabled"
    return evaluation.variant(*evaluation.pair(name)) or "disabled"


def results(evaluation: Evaluation, names: Sequence[str]) -> dict[str, tuple[bool, str]]:
    return {name: (is_enabled(evaluation, name), variant(evaluation, name)) for name in names}
