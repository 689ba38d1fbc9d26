"""Results of Yggdrasil, the engine of most of Unleash's SDKs, and ours beside them."""

from datetime import UTC, datetime
from typing import Any

from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.engine.flags import CompiledFlag
from playground.engine.outcomes import FlagOutcome, ParentProblem
from playground.engine.snapshot import Snapshot
from tests.support.engine import results


def sdk_results(engine: Any, names: list[str], context: dict[str, Any]) -> dict[str, tuple[bool, str]]:
    return {
        name: (engine._do_is_enabled(name, context), engine._do_get_variant(name, context).name)
        for name in names
    }


class Chance:
    """A source of randomness that always gives one number, and knows whether it was asked."""

    def __init__(self, number: float) -> None:
        self.number = number
        self.asked = False

    def __call__(self) -> float:
        self.asked = True
        return self.number


def certain_results(snapshot: Snapshot, context: dict[str, Any]) -> dict[str, tuple[bool, str]]:
    """Our results, without those that chance decides and those that only an application can tell, because
    it knows its host name and its custom strategies."""
    certain = {}
    for flag in snapshot.flags:
        result = certain_result(snapshot.only(flag.name), flag, context)
        if result is not None:
            certain[flag.name] = result
    return certain


def certain_result(
    snapshot: Snapshot, flag: CompiledFlag, context: dict[str, Any]
) -> tuple[bool, str] | None:
    """The result of a flag; None where chance decides: it was asked, and its extremes do not settle it."""
    low, high = Chance(0.0), Chance(0.999999)
    now = datetime.now(UTC)
    first, second = (evaluate(snapshot, Context(context), now=now, random=chance) for chance in (low, high))
    if depends_on_unknown(first.pair(flag.name)[1]):
        return None
    outcomes = [results(evaluation, [flag.name])[flag.name] for evaluation in (first, second)]
    settled = len(flag.strategies) <= 1 and not flag.parents and outcomes[0] == outcomes[1]
    return outcomes[0] if settled or not low.asked else None


def depends_on_unknown(outcome: FlagOutcome) -> bool:
    return any(unmet.problem is ParentProblem.UNKNOWN for unmet in outcome.unmet)
