"""How many generated examples a test tries."""

import os

# 1 in CI. Less while developing, and 20 or more for a night's worth.
FACTOR = float(os.environ.get("FLAGADMIN_EXAMPLES") or 0.3)


def examples(number: int) -> int:
    return max(5, round(number * FACTOR))
