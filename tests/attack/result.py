"""What an attack found: a row of the table at the end."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """``held``: the service did what it promises. ``figures`` say how well, or what fell."""

    attack: str
    held: bool
    figures: str


def table(results: Iterable[Result]) -> str:
    results = list(results)
    width = max((len(result.attack) for result in results), default=0)
    return "\n".join(
        f"{'held' if result.held else 'FELL':4}  {result.attack:{width}}  {result.figures}"
        for result in results
    )
