"""A relay before the server that is attacked: what it is asked for and told by SDKs, and by whoever is not one."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path

from tests.attack import readers, resources
from tests.attack.calls import ODD, Call, judge
from tests.attack.installation import Installation, Question
from tests.attack.resources import Attacked, beside_each
from tests.attack.result import Result
from tests.support.live_server import Client, wait_until
from tests.support.relay import relaying

TOLD = ("/api/client/register", "/api/client/metrics", "/api/client/metrics/bulk", "/api/client/relays")
MEMBERS = ("appName", "bucket", "instanceId", "tokens", "applications", "metrics", "impactMetrics")
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
        group = relay.process.pid
        yield replace(target, port=relay.port, group=group, question=FRONTEND, ready="/ready", waits=[])


def attacks(upstream: Installation, seconds: float) -> Iterator[Result]:
    with relay_before(upstream) as relay:
        quiet = resources.quiet_p99(relay, 3)
        each = seconds / 10
        yield judge("relay: odd conditions on SDK answers", relay, readers.conditional(), each)
        yield judge("relay: odd OFREP requests", relay, readers.evaluated(), each)
        yield judge("relay: odd reports", relay, report_oddly(), each)
        yield from beside_each(relay, quiet, crowds(relay, upstream, each))


def report_oddly() -> Iterator[Call]:
    for path in (*TOLD, "/edge/validate"):
        for odd in ODD:
            for key in ("backend", "frontend", "portal", ""):
                yield Call(key, "POST", path, odd)
            for member in MEMBERS:
                yield Call("backend", "POST", path, {"appName": "a", member: odd})


def crowds(
    relay: Installation, upstream: Installation, seconds: float
) -> Mapping[str, Callable[[], Attacked]]:
    made = {
        f"1 MB: {name}": partial(resources.repeat, relay, resources.bodies()[name], seconds)
        for name in BODIES
    }
    made |= {
        "tokens that are made up": partial(send_numbered, seconds, partial(make_up_token, relay)),
        "reports of ever other applications": partial(send_numbered, seconds, partial(report_other, relay)),
        "200 slow bodies without a key": partial(resources.hold_sockets, relay, seconds),
        f"{WAITING} bodies of 1 MB at once without a key": partial(
            resources.crowd, relay, WAITING, 1, "/api/frontend", seconds
        ),
        f"{readers.DEAF} streams that nobody reads": partial(
            readers.hold_streams, relay, seconds, upstream.port
        ),
    }
    return {f"relay: {name}": attack for name, attack in made.items()}


def make_up_token(relay: Installation, number: int) -> tuple[int, bytes]:
    """Each has a form that the relay must ask its upstream about."""
    with closing(Client(relay.port, f"*:production.{number:040}")) as client:
        return client.call("GET", "/api/client/features")


def report_other(relay: Installation, number: int) -> tuple[int, bytes]:
    """Each report is of another application, and of flags that there are not."""
    now = datetime.now(UTC).isoformat()
    toggles = {f"none-{number}-{flag}": {"yes": 1, "no": 0} for flag in range(FLAGS)}
    bucket = {"start": now, "stop": now, "toggles": toggles}
    return relay.call("backend", "POST", "/api/client/metrics", {"appName": f"a{number}", "bucket": bucket})


def send_numbered(seconds: float, send: Callable[[int], tuple[int, bytes]]) -> Attacked:
    """Calls ``send`` with one number after the other."""
    attacked, until = Attacked(), time.monotonic() + seconds
    for number in count():
        if time.monotonic() > until:
            break
        began = time.perf_counter()
        status, answer = send(number)
        attacked.saw(status, time.perf_counter() - began, len(answer))
    return attacked
