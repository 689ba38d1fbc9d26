"""The number of generated examples that each Hypothesis test runs."""

import os

# A factor: 1 in CI, less during development, 20 or more for overnight runs.
FACTOR = float(os.environ.get("FLAGADMIN_EXAMPLES") or 0.3)


def examples(number: int) -> int:
    return max(5, round(number * FACTOR))
