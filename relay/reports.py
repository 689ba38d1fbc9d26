"""Adds up what SDKs report, keeps it on disk until the upstream has it, and sends it in bulk.

A report is a line of a journal before it is acknowledged. With each interval the journal becomes a batch, which has the
journal's id and is sent until it is acknowledged: a server that knows ids counts it once.
"""

import asyncio
import logging
import random
import uuid
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from relay.storage import Storage
from relay.tokens import BACKEND, MAX_AT_ONCE, Ask, Tokens
from relay.upstream import UpstreamFailed

log = logging.getLogger("flagadmin.relay")

BULK = "/api/client/metrics/bulk"
ID_HEADER = "Flagadmin-Report-Id"
JOURNAL, BATCH = "journal-", "batch-"
MAX_ENTRIES = 2_000  # of a list in one request
MAX_IMPACT = 200
MAX_IDS = 100_000
MAX_BATCHES = 1_000  # that wait for the upstream; the oldest are dropped
STORED = frozenset((200, 202))

Line = dict[str, Any]


class Sums:
    """Reports, added up by environment."""

    def __init__(self) -> None:
        self._applications: dict[str, dict[tuple[str, str], Line]] = defaultdict(dict)
        self._counts: dict[str, dict[tuple[str, str, str], Line]] = defaultdict(dict)
        self._impact: dict[str, list[Any]] = defaultdict(list)
        self._seen: dict[str, set[str]] = defaultdict(set)

    def __bool__(self) -> bool:
        return bool(self._applications or self._counts or self._impact or self._seen)

    def add(self, line: Line) -> None:
        environment = line["environment"]
        self._seen[environment].add(line["token"])
        for application in line["applications"]:
            key = application["appName"], application["instanceId"]
            known = self._applications[environment].setdefault(key, {})
            known.update({name: value for name, value in application.items() if value})
        for metric in line["metrics"]:
            self._add_count(environment, metric)
        room = MAX_IMPACT - len(self._impact[environment])
        self._impact[environment] += line["impactMetrics"][:room]

    def _add_count(self, environment: str, metric: Line) -> None:
        key = metric["appName"], metric["featureName"], metric["timestamp"]
        count = self._counts[environment].setdefault(key, metric | {"yes": 0, "no": 0, "variants": {}})
        count["yes"] += metric["yes"]
        count["no"] += metric["no"]
        for name, number in metric["variants"].items():
            count["variants"][name] = count["variants"].get(name, 0) + number

    @property
    def clients(self) -> int:
        """Instances of applications."""
        return sum(map(len, self._applications.values()))

    def bodies(self) -> Iterator[Line]:
        """What is sent, in parts of a bounded size, each with its environment."""
        for environment, seen in self._seen.items():
            applications = list(self._applications[environment].values())
            metrics = list(self._counts[environment].values())
            for first in range(0, max(len(applications), len(metrics), 1), MAX_ENTRIES):
                yield {
                    "environment": environment,
                    "applications": applications[first : first + MAX_ENTRIES],
                    "metrics": metrics[first : first + MAX_ENTRIES],
                    "impactMetrics": [] if first else self._impact[environment],
                    "seenTokens": [] if first else sorted(seen)[:MAX_AT_ONCE],
                }


class Reports:
    """All methods are called in the event loop."""

    def __init__(self, storage: Storage, ask: Ask, tokens: Tokens, *, interval: float) -> None:
        self._storage, self._ask, self._tokens = storage, ask, tokens
        self._interval = interval
        self._sums = Sums()
        self._journal = uuid.uuid4().hex
        self._batches: dict[str, list[Line]] = {}
        self._ids: OrderedDict[str, None] = OrderedDict()  # of reports of other relays
        self.received = self.sent = self.dropped = 0
        self.clients = 0
        """Instances of applications that reported in the last interval."""
        self._read_stored()

    @property
    def waiting(self) -> int:
        """Batches that the upstream has not acknowledged."""
        return len(self._batches)

    def add(self, line: Line) -> None:
        """Returns once the report survives the end of the process, unless the disk fails. An id counts once."""
        if identifier := line.get("id"):
            if identifier in self._ids:
                return
            self._ids[identifier] = None
            if len(self._ids) > MAX_IDS:
                self._ids.popitem(last=False)
        self._storage.append(f"{JOURNAL}{self._journal}", orjson.dumps(line))
        self._sums.add(line)
        self.received += 1

    def _read_stored(self) -> None:
        for name in self._storage.names(BATCH):
            parts = _read_json(self._storage.read(name) or b"")
            if isinstance(parts, list):
                self._batches[name.removeprefix(BATCH)] = parts
        for name in self._storage.names(JOURNAL):
            identifier = name.removeprefix(JOURNAL)
            if identifier not in self._batches:
                self._journal, self._sums = identifier, Sums()
                for text in (self._storage.read(name) or b"").splitlines():
                    if isinstance(line := _read_json(text), dict):
                        self._sums.add(line)
                        if line.get("id"):
                            self._ids[line["id"]] = None
                self.close_journal()
            self._storage.delete(name)

    def close_journal(self) -> None:
        """Makes a batch of the journal, and begins the next one."""
        identifier, sums = self._journal, self._sums
        self._journal, self._sums = uuid.uuid4().hex, Sums()
        self.clients = sums.clients
        if sums:
            parts = [part | {"number": number} for number, part in enumerate(sums.bodies())]
            self._batches[identifier] = parts
            if self._storage.write(f"{BATCH}{identifier}", orjson.dumps(parts)):
                self._storage.delete(f"{JOURNAL}{identifier}")
        while len(self._batches) > MAX_BATCHES:
            self._drop(next(iter(self._batches)))

    async def keep_sending(self) -> None:
        """A task: sends after each interval."""
        while True:
            await asyncio.sleep(self._interval * random.uniform(0.7, 1.0))
            await self.send()

    async def send(self) -> None:
        """Sends all batches, the oldest first, until one is not acknowledged."""
        self.close_journal()
        for identifier in list(self._batches):
            try:
                await self._send(identifier)
            except UpstreamFailed as error:
                log.warning("Reports are kept: %s", error)
                return

    async def _send(self, identifier: str) -> None:
        parts = self._batches[identifier]
        for part in list(parts):
            if await self._send_part(part, f"{identifier}-{part['number']}"):
                parts.remove(part)
                if parts:
                    self._storage.write(f"{BATCH}{identifier}", orjson.dumps(parts))
        if parts:  # there is no token for their environment
            return
        del self._batches[identifier]
        self._storage.delete(f"{BATCH}{identifier}")
        self._storage.delete(f"{JOURNAL}{identifier}")
        self.sent += 1

    async def _send_part(self, part: Line, identifier: str) -> bool:
        environment = part["environment"]
        backend = (
            token
            for token in self._tokens.all()
            if token.kind == BACKEND and token.environment == environment
        )
        token = next(backend, None)
        if token is None:
            return False
        body = {name: value for name, value in part.items() if name not in ("environment", "number")}
        answer = await self._ask("POST", BULK, token=token.secret, body=body, headers={ID_HEADER: identifier})
        if answer.status == 400:  # all that is valid has been stored
            log.warning("The upstream refused parts of a report: %s", answer.body[:500])
        elif answer.status not in STORED:
            raise UpstreamFailed(f"The upstream answered {answer.status} to a report.")
        return True

    def _drop(self, identifier: str) -> None:
        log.error("Reports are dropped: %d batches wait for the upstream", len(self._batches))
        del self._batches[identifier]
        self._storage.delete(f"{BATCH}{identifier}")
        self.dropped += 1


def hour_of(moment: datetime, *, now: datetime) -> str:
    """The hour in which something was counted. What the client's clock says of the future counts as now."""
    moment = min(moment.astimezone(UTC), now + timedelta(hours=1))
    return moment.replace(minute=0, second=0, microsecond=0).isoformat().replace("+00:00", "Z")


def _read_json(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # the last line of a process that was killed
        return None
