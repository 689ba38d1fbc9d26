"""Did it work: what an analysis costs beside its assignments.

Rows of 30 days, four for each unit, three measures of which one has a covariate, and a segment of 40 values.
``pytest -m exhaustive tests/playground/outcomes/experiment`` has the simulations of experiments whose truth is known.

``python -m tests.benchmarks.bench_analysis [ROWS]`` (default: 2000000)
"""

import resource
import sys
import time
from datetime import UTC, datetime, timedelta

import numpy as np

START, DAYS, CHUNK = datetime(2026, 11, 1, tzinfo=UTC), 30, 20_000


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(rows: int) -> None:
    from playground.outcomes.experiment import Design, Measure, Phase, analyse, collect

    measures = (
        Measure("bought", "proportion", "bought"),
        Measure("spent", "mean", "spent", covariate="before"),
        Measure("order", "ratio", "spent"),
    )
    phases = (Phase(START, {"off": 1, "on": 1}),)
    end = START + timedelta(days=DAYS)
    collector = collect(Design(measures, phases, "off", START, end, segments=("country",)))
    random, before, spent_on = np.random.default_rng(1), peak(), 0.0
    for _ in range(0, rows, CHUNK):
        numbers = random.integers(0, rows // 4, CHUNK)
        bought = random.random(CHUNK) < 0.1 + 0.003 * (numbers % 2)
        amounts = random.gamma(2, 20, CHUNK).round(2)
        seconds = random.random(CHUNK) * DAYS * 86_400
        arguments = (
            [f"user-{number}" for number in numbers],
            ["on" if number % 2 else "off" for number in numbers],
            [START + timedelta(seconds=float(second)) for second in seconds],
            {
                "bought": [str(int(yes)) for yes in bought],
                "spent": [str(amount) if yes else "" for yes, amount in zip(bought, amounts, strict=True)],
                "before": [str(number % 97) for number in numbers],
                "country": [f"c{number % 40}" for number in numbers],
            },
        )
        began = time.process_time()
        collector.add(*arguments)
        spent_on += time.process_time() - began
    print(
        f"{rows:,} rows: {spent_on:.1f} s of CPU to collect, {peak() - before:.0f} MB more ({peak():.0f} MB in all)"
    )
    began = time.process_time()
    analysis = analyse(collector)
    print(
        f"{time.process_time() - began:.1f} s of CPU to analyse {analysis.counts.units:,} units, {peak():.0f} MB in all"
    )
    for comparison in analysis.comparisons:
        print(comparison.sentence)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000)
