"""The handle of a rollout: which of the 100 buckets have the flag, and which would get or lose it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from playground.engine.definitions import StrategyDefinition
from playground.engine.strategy_types import STRATEGY_TYPES


class Strip(NamedTuple):
    """Numbers of buckets: those in ``stored`` had the flag, those in ``share`` would have it.

    ``moves``: another stickiness or group deals the users out anew, so that no bucket is the same as before.
    """

    stored: int
    share: int
    moves: bool = False

    @property
    def kept(self) -> int:
        return 0 if self.moves else min(self.stored, self.share)

    @property
    def gained(self) -> int:
        return self.share - self.kept

    @property
    def lost(self) -> int:
        return 0 if self.moves else max(0, self.stored - self.share)

    @property
    def words(self) -> str:
        """``buckets 1 to 10 keep it, 11 to 50 get it``"""
        ends = (("keep", 0, self.kept), ("get", self.kept, self.share), ("lose", self.share, self.stored))
        parts = [f"{begin + 1} to {end} {verb} it" for verb, begin, end in ends if begin < end]
        return f"100 buckets of users: {', '.join(parts) or 'none has it'}"


def draw_strip(stored: StrategyDefinition | None, document: StrategyDefinition) -> Strip | None:
    """None without a percentage that SDKs can read. ``stored`` is None for a strategy that is not stored yet."""
    share = find_percentage(document)
    if share is None:
        return None
    before = find_percentage(stored) if stored else 0
    is_everyone = before == 100 or not before
    moves = not is_everyone and stored is not None and _read_dealing(stored) != _read_dealing(document)
    return Strip(before or 0, share, moves)


def find_percentage(strategy: Mapping[str, Any]) -> int | None:
    """The percentage of a strategy's rollout: 100 for a type that is on for everyone; None for other types."""
    kind = STRATEGY_TYPES.get(strategy["name"])
    if kind is None or (not kind.percentage and kind.parameters):
        return None
    if not kind.percentage:
        return 100
    return None if kind.explain_percentage(strategy["parameters"]) else kind.share(strategy["parameters"])


def _read_dealing(strategy: StrategyDefinition) -> tuple[Any, Any]:
    parameters = strategy["parameters"]
    return parameters.get("stickiness"), parameters.get("groupId")
