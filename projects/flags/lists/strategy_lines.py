"""The strategies of a flag as lines of its page: a sentence, a percentage, variants."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from flagadmin.core.lists.charts import choose_variant_color
from playground.engine.definitions import StrategyDefinition, VariantDefinition
from playground.engine.strategy_types import STRATEGY_TYPES
from projects.strategies.sentences import Summary, format_percent, summarize_strategy

MAX_VARIANTS, FEW_VARIANTS = 8, 3


@dataclass(frozen=True, slots=True)
class Share:
    """A variant with its weight, as text, and its color on this page."""

    name: str
    percent: str
    color: str


@dataclass(slots=True)
class Palette:
    """Gives a variant the same color everywhere on the page."""

    colors: dict[str, str] = field(default_factory=dict)

    def shares(self, variants: Iterable[VariantDefinition]) -> list[Share]:
        return [
            Share(
                str(variant["name"]),
                f"{format_percent(variant.get('weight'))} %",
                self._color(variant["name"]),
            )
            for variant in variants
        ]

    def _color(self, name: str) -> str:
        return self.colors.setdefault(name, choose_variant_color(len(self.colors)))


@dataclass(frozen=True, slots=True)
class StrategyLine:
    """A strategy. ``share`` is the percentage of its bar, None if no number fits; ``of`` is shown beside it.

    ``up`` and ``down`` tell whether it can move.
    """

    id: str
    number: int
    title: str
    disabled: bool
    summary: Summary
    share: float | None
    of: str
    variants: Sequence[Share]
    more_variants: int
    edit: str
    up: bool
    down: bool


def make_strategy_lines(
    strategies: Sequence[StrategyDefinition],
    segments: Mapping[int, str],
    palette: Palette,
    edit: str,
    *,
    limit: int,
) -> Iterator[StrategyLine]:
    """``edit``: the URL of the editor, with the environment. ``limit``: the conditions listed of each."""
    listed = MAX_VARIANTS if limit > 1 else FEW_VARIANTS
    for index, strategy in enumerate(strategies):
        summary = summarize_strategy(strategy, segments=segments, limit=limit)
        share, variants = (
            calculate_share(strategy["name"], strategy["parameters"]),
            palette.shares(strategy["variants"]),
        )
        yield StrategyLine(
            id=strategy["id"],
            number=index + 1,
            title=strategy["title"] or "",
            disabled=strategy["disabled"],
            summary=summary,
            share=share,
            of=_describe_share(share, strategy, summary),
            variants=variants[:listed],
            more_variants=max(len(variants) - listed, 0),
            edit=f"{edit}&{urlencode({'strategyId': strategy['id']})}",
            up=index > 0,
            down=index + 1 < len(strategies),
        )


def calculate_share(name: str, parameters: Mapping[str, str]) -> float | None:
    """The percentage of requests for which it is on if its conditions hold.

    None if it names users or addresses, or is custom.
    """
    kind = STRATEGY_TYPES.get(name)
    if kind is None or kind.lists:
        return None
    return float(kind.share(parameters)) if kind.percentage else 100.0


def _describe_share(share: float | None, strategy: StrategyDefinition, summary: Summary) -> str:
    if summary.conditions:
        return "of matches"
    if share == 100:
        return "everyone"
    stickiness = strategy["parameters"].get("stickiness")
    return f"by {stickiness}" if stickiness not in (None, "default", "random") else ""


def move_strategy(ids: Sequence[str], move: str) -> list[str]:
    """The ids after moving one of them a step: ``move`` is "up" or "down", a space and its id."""
    direction, _, chosen = move.partition(" ")
    order = list(ids)
    if chosen in order:
        index = order.index(chosen)
        order.insert(max(index + (-1 if direction == "up" else 1), 0), order.pop(index))
    return order
