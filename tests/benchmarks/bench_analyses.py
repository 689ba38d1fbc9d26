"""An analysis of a table of 100,000 rows: CPU, and the memory that it takes.

The flag has 40 changes in a month, as in ``bench_assignments``, of which each is a part of the period with shares of its
own. The figure for 1,000,000 rows is ten times the one of the rows.

``python -m tests.benchmarks.bench_analyses [ROWS]`` (default: 100000)
"""

import os
import resource
import sys
import time
from datetime import timedelta
from io import BytesIO

from tests.benchmarks.bench_assignments import CHANGES, MONTH, START, make_state, make_table


def main(rows: int) -> None:
    from playground.comparison.states import compile_definitions
    from playground.models import Analysis
    from playground.outcomes.analyses import evaluate
    from playground.outcomes.analyses.design import Design, read_measure
    from playground.outcomes.history import FlagHistory
    from projects.definitions import Definitions

    setattr(evaluate, "update_run", lambda run, **values: None)  # noqa: B010 - mypy forbids the assignment
    setattr(evaluate, "read_now", lambda: START + timedelta(days=31))  # noqa: B010
    moments = [START + timedelta(seconds=MONTH * change / CHANGES) for change in range(CHANGES)]
    definitions = [Definitions([make_state(change)], {}) for change in range(CHANGES)]
    snapshots = list(compile_definitions("production", *definitions))
    history = FlagHistory("f", moments, snapshots, [str(change) for change in range(CHANGES)])
    measures = [read_measure("mean", "revenue")]
    design = Design(since=START, until=START + timedelta(days=30), measures=measures)
    run, body = Analysis(), make_table(rows)
    begin = time.process_time()
    result = evaluate.Reading(run, design, history, lambda: BytesIO(body)).analyze([])
    seconds = time.process_time() - begin
    print(
        f"{rows:,} rows, {result['counts']['units']:,} units: {seconds:.2f} s of CPU; "
        f"1,000,000 rows: {seconds / rows * 1e6:.0f} s; "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB of memory"
    )


if __name__ == "__main__":
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
