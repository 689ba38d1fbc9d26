"""Measures comparing two states: CPU time beside that of evaluating each context on its own.

    python tests/benchmarks/bench_compare.py

The flags are those of ``bench_engine``. The floor is hashing every identifier of every rollout and list of variants
once; the longest wait is that of another thread that wants to run every millisecond meanwhile.
"""

import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from flagadmin.core.server.memory import settle
from playground.comparison.compare import Comparison
from playground.comparison.table import ContextTable
from playground.comparison.users import make_users
from playground.engine.compilation import compile_snapshot, recompile
from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.engine.hashing import compute_hashes
from playground.engine.snapshot import Snapshot
from projects.definitions import Definitions
from tests.benchmarks.bench_engine import make_flag

NOW = 1_700_000_000_000
ROUNDS = 5


def cpu_seconds(work: Callable[[], object]) -> float:
    """The least CPU time of some rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def changed_rollout(document: dict[str, Any]) -> dict[str, Any]:
    first, *others = document["strategies"]
    parameters = first["parameters"] | {"rollout": "80"}
    return document | {"strategies": [first | {"parameters": parameters}, *others]}


def drafted(snapshot: Snapshot, document: dict[str, Any]) -> Snapshot:
    """The snapshot with another definition of a flag."""
    earlier = snapshot.without({document["name"]})
    return recompile(
        [document], {}, environment="production", earlier=earlier, unchanged={"default"}
    ).snapshot


def hashed(contexts: list[Context], lists: int) -> None:
    identifiers = [context.values["userId"].encode() for context in contexts]
    for number in range(lists):
        compute_hashes(b"%d:" % number, identifiers, 0)


def longest_wait(work: Callable[[], object]) -> float:
    """The longest time that another thread had to wait while this ran, in seconds."""
    found, done = 0.0, threading.Event()

    def other() -> None:
        nonlocal found
        while not done.is_set():
            start = time.perf_counter()
            time.sleep(0.001)
            found = max(found, time.perf_counter() - start - 0.001)

    thread = threading.Thread(target=other)
    thread.start()
    work()
    done.set()
    thread.join()
    return found


def line(what: str, seconds: float, evaluations: int) -> None:
    sys.stdout.write(f"{what:58s} {seconds * 1e3:9.1f} ms {seconds / evaluations * 1e6:8.2f} µs each\n")


def one_flag(documents: list[Any], snapshot: Snapshot) -> None:
    name = documents[500]["name"]
    draft = changed_rollout(documents[500])
    state = Definitions([documents[500]], {})
    contexts = make_users([state], now=NOW, count=10_000)

    def all_of_it() -> int:
        made = make_users([state], now=NOW, count=10_000)
        comparison = Comparison(snapshot, drafted(snapshot, draft), ContextTable(made))
        found = comparison.flag(name)
        return len(list(comparison.examples(found, 20))) + found.changed

    def each() -> None:
        for compiled in (snapshot.only(name), drafted(snapshot, draft).only(name)):
            for context in contexts:
                evaluate(compiled, context, now=NOW, random=random.random)

    line("10,000 contexts x 1 flag, each on its own", cpu_seconds(each), 20_000)
    line("  compared, with making the contexts and 20 examples", cpu_seconds(all_of_it), 20_000)
    states = snapshot, drafted(snapshot, draft)
    alone = cpu_seconds(lambda: Comparison(*states, ContextTable(contexts)).flag(name))
    line("  without them", alone, 20_000)
    line("  floor: hashing", cpu_seconds(lambda: hashed(contexts, 2)), 20_000)
    waits = longest_wait(all_of_it), longest_wait(lambda: time.sleep(0.2))
    sys.stdout.write(
        "  longest wait of another thread {:.1f} ms; {:.1f} ms while nothing runs\n".format(
            *(w * 1e3 for w in waits)
        )
    )


def many_flags(documents: list[dict[str, Any]], snapshot: Snapshot) -> None:
    other = compile_snapshot(map(changed_rollout, documents), {}, environment="production")
    contexts = make_users([Definitions(documents[:50], {})], now=NOW, count=1_000)

    def each() -> None:
        for context in contexts[:100]:
            evaluate(snapshot, context, now=NOW, random=random.random)

    def compare() -> int:
        comparison = Comparison(snapshot, other, ContextTable(contexts))
        return sum(comparison.flag(name).changed for name in comparison.names())

    line("1,000 flags x 100 contexts, all flags of each at once", cpu_seconds(each), 100_000)
    line("1,000 flags x 1,000 contexts, compared", cpu_seconds(compare), 2_000_000)
    line("  floor: hashing", cpu_seconds(lambda: hashed(contexts, 2_000)), 2_000_000)


def main() -> None:
    settle()
    documents = [make_flag(index) for index in range(1_000)]
    snapshot = compile_snapshot(documents, {}, environment="production")
    one_flag(documents, snapshot)
    many_flags(documents, snapshot)


if __name__ == "__main__":
    main()
