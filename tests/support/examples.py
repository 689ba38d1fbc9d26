"""How many generated examples a test tries."""

import os
from typing import Any

# A factor: 0.5 in CI, less during development, 20 or more for overnight runs.
FACTOR = float(os.environ.get("FLAGADMIN_EXAMPLES") or 0.3)


def examples(number: int) -> int:
    return max(5, round(number * FACTOR))


def spread(every: list[Any], number: int, period: int = 1) -> list[Any]:
    """At most ``number`` of the items, evenly spread. If they repeat after ``period`` items, every kind is among them."""
    step = -(-len(every) // number)
    return every[:: step + (period > 1 and step % period == 0)]
