"""A relay before the server that is attacked: what it is asked for and told by SDKs, and by whoever is not one."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from tests.attack import protocols, readers, resources
from tests.attack.calls import Call, judge
from tests.attack.installation import Installation, Question
from tests.attack.resources import Attacked, beside
from tests.attack.result import Result
from tests.support.live_server import Client, wait_until
from tests.support.relay import relaying

TOLD = ("/api/client/register", "/api/client/metrics", "/api/client/metrics/bulk", "/api/client/relays")
FRONTEND = Question("frontend", "POST", "/api/frontend", {"context": {"userId": "42"}})
# Of 1 MB, to the addresses that a relay has as well.
BODIES = ("bulk metrics", "a long number", "many fields", "long addresses")
INTERVALS = ("--poll-seconds", "15", "--report-seconds", "60")  # as they are without options
WAITING = 100
FLAGS = 1_000  # in a report


@contextmanager
def relay_before(target: Installation) -> Iterator[Installation]:
    """A relay that knows the target's tokens, to be attacked as the target itself."""
    with (
        tempfile.TemporaryDirectory(prefix="flagadmin-attack-relay-") as folder,
        relaying(target.port, Path(folder), "--token", target.keys["backend"], *INTERVALS) as relay,
    ):
        wait_until(lambda: relay.get("/api/frontend", target.keys["frontend"])[0] == 200)
        yield replace(target, port=relay.port, group=relay.process.pid, question=FRONTEND, ready="/ready")


def attacks(upstream: Installation, seconds: float) -> Iterator[Result]:
    with relay_before(upstream) as relay:
        quiet = resources.quiet_p99(relay, 3)
        each = seconds / 10
        yield judge("relay: odd conditions on SDK answers", relay, readers.conditional(), each)
        yield judge("relay: odd OFREP requests", relay, readers.evaluated(), each)
        yield judge("relay: odd reports", relay, report_oddly(), each)
        for name, attack in crowds(relay, upstream, each).items():
            yield beside(f"relay: {name}", relay, quiet, attack)


def report_oddly() -> Iterator[Call]:
    for path in (*TOLD, "/edge/validate"):
        for key in ("backend", "frontend", "portal", ""):
            for odd in protocols.ODD:
                yield Call(key, "POST", path, odd)
        for member in (
            "appName",
            "bucket",
            "instanceId",
            "tokens",
            "applications",
            "metrics",
            "impactMetrics",
        ):
            for odd in protocols.ODD:
                yield Call("backend", "POST", path, {"appName": "a", member: odd})


def crowds(relay: Installation, upstream: Installation, seconds: float) -> dict[str, Callable[[], Attacked]]:
    bodies = {
        f"1 MB: {name}": lambda name=name: resources.repeat(relay, resources.BODIES[name], seconds)
        for name in BODIES
    }
    return bodies | {
        "tokens that are made up": lambda: make_up_tokens(relay, seconds),
        "reports of ever other applications": lambda: report_others(relay, seconds),
        "200 slow bodies without a key": lambda: resources.hold_sockets(relay, seconds),
        f"{WAITING} bodies of 1 MB at once without a key": lambda: resources.crowd(
            relay, WAITING, 1, "/api/frontend", seconds=seconds
        ),
        f"{readers.DEAF} streams that nobody reads": lambda: readers.hold_streams(
            relay, seconds, admin_port=upstream.port
        ),
    }


def make_up_tokens(relay: Installation, seconds: float) -> Attacked:
    """Each has a form that the relay must ask its upstream about."""

    def send(number: int) -> tuple[int, bytes]:
        with closing(Client(relay.port, f"*:production.{number:040}")) as client:
            return client.call("GET", "/api/client/features")

    return send_again_and_again(send, seconds)


def report_others(relay: Installation, seconds: float) -> Attacked:
    """Each report is of another application, and of flags that there are not."""
    with closing(Client(relay.port, relay.keys["backend"])) as client:

        def send(number: int) -> tuple[int, bytes]:
            now = datetime.now(UTC).isoformat()
            toggles = {f"none-{number}-{flag}": {"yes": 1, "no": 0} for flag in range(FLAGS)}
            bucket = {"start": now, "stop": now, "toggles": toggles}
            return client.call("POST", "/api/client/metrics", {"appName": f"a{number}", "bucket": bucket})

        return send_again_and_again(send, seconds)


def send_again_and_again(send: Callable[[int], tuple[int, bytes]], seconds: float) -> Attacked:
    """Calls ``send`` with one number after the other."""
    attacked, until = Attacked(), time.monotonic() + seconds
    for number in count():
        if time.monotonic() > until:
            break
        began = time.perf_counter()
        status, answer = send(number)
        attacked.saw(status, time.perf_counter() - began, len(answer))
    return attacked
