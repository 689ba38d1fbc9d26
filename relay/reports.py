"""Adds up SDK reports, keeps them on disk until the upstream has them, and sends them in bulk.

A report is written to a journal before it is acknowledged. After each interval the journal becomes batches, which are
named after it and sent until they are acknowledged. A server that supports ids counts each batch once.
"""

import asyncio
import logging
import random
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Any, TypeVar

import orjson

from flagadmin.core.caches import BoundedDict
from flagadmin.core.errors import ServiceUnavailable
from relay.storage import Storage
from relay.tokens import BACKEND, MAX_AT_ONCE, Ask, Token, Tokens, UpstreamFailed

log = logging.getLogger("flagadmin.relay")

BULK = "/api/client/metrics/bulk"
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
"""Earlier times of reports are wrong, and count as this one. Some of them do not exist in UTC."""
ID_HEADER = "Flagadmin-Report-Id"
JOURNAL, BATCH = "journal-", "batch-"
MAX_ENTRIES = 2_000  # per list in one request
MAX_IMPACT = 200
# A server's limits on one count; above them it refuses the report. The same as in `sdk.schemas`, which loads late.
MAX_COUNT, MAX_VARIANTS = 2**31 - 1, 1_000
MAX_IDS = 100_000
MAX_BATCHES = 5_000  # waiting for the upstream; the oldest are dropped
MAX_BATCHES_IN_MEMORY = 50  # batches that could not be written to disk
# The limit on applications, flags, variants and strategies in a journal: invented names must not fill the memory.
MAX_NAMES = 100_000
MAX_JOURNAL = 100_000_000  # bytes; a larger journal is sent before the interval is over
BYTES_OF_NAME = 250  # charged for an impact metric
STORED = frozenset((200, 202))
LISTS = ("applications", "metrics", "impactMetrics", "seenTokens")
"""The lists in a bulk report."""
SMALL = 10_000  # bytes; a server that finds fewer too many is at fault

Line = dict[str, Any]
T = TypeVar("T")


Use = tuple[str, str, str]
"""An application's use of a flag in an hour."""


class Sums:
    """Reports, added up by environment.

    There may be MAX_NAMES flags with their counts. They are stored in tuples of strings and numbers, which the garbage
    collector skips: traversing as many dictionaries would block the relay for 80 ms.
    """

    def __init__(self) -> None:
        self._applications: dict[str, dict[tuple[str, str], Line]] = defaultdict(dict)
        self._counts: dict[str, dict[Use, tuple[int, int]]] = defaultdict(dict)  # on and off
        self._variants: dict[str, dict[Use, dict[str, int]]] = defaultdict(dict)
        self._impact: dict[str, list[bytes]] = defaultdict(list)  # each metric as JSON
        self._seen: dict[str, set[str]] = defaultdict(set)
        self.names = 0
        """The number of stored names, which determines the memory use."""

    def add(self, line: Line) -> None:
        environment = line["environment"]
        self._seen[environment].add(line["token"])
        for application in line["applications"]:
            self._add_application(environment, application)
        for metric in line["metrics"]:
            self._add_count(environment, metric)
        impact = list(map(orjson.dumps, line["impactMetrics"]))
        self._impact[environment] += impact
        self.names += sum(1 + len(metric) // BYTES_OF_NAME for metric in impact)

    def _add_application(self, environment: str, application: Line) -> None:
        key = application["appName"], application["instanceId"]
        known = self._applications[environment].setdefault(key, {})
        before = _count_names(known)
        known.update({name: value for name, value in application.items() if value})
        self.names += _count_names(known) - before

    def _add_count(self, environment: str, metric: Line) -> None:
        use, counts = (
            (metric["appName"], metric["featureName"], metric["timestamp"]),
            self._counts[environment],
        )
        self.names += use not in counts
        yes, no = counts.get(use, (0, 0))
        counts[use] = min(yes + metric["yes"], MAX_COUNT), min(no + metric["no"], MAX_COUNT)
        if metric["variants"]:
            variants = self._variants[environment].setdefault(use, {})
            before = len(variants)
            for name, number in metric["variants"].items():
                if name in variants or len(variants) < MAX_VARIANTS:
                    variants[name] = min(variants.get(name, 0) + number, MAX_COUNT)
            self.names += len(variants) - before

    @property
    def clients(self) -> int:
        """The number of application instances."""
        return sum(map(len, self._applications.values()))

    def bodies(self) -> Iterator[Line]:
        """Yields the contents in parts of a bounded size, each with its environment."""
        for environment, seen in self._seen.items():
            nothing: list[Any] = []
            parts = zip_longest(
                _cut(self._applications[environment].values(), MAX_ENTRIES),
                _cut(self._counts[environment], MAX_ENTRIES),
                _cut(self._impact[environment], MAX_IMPACT),
                _cut(sorted(seen), MAX_AT_ONCE),
                fillvalue=nothing,
            )
            for applications, uses, impact, tokens in parts:
                yield {
                    "environment": environment,
                    "applications": applications,
                    "metrics": [self._make_metric(environment, use) for use in uses],
                    "impactMetrics": list(map(orjson.Fragment, impact)),
                    "seenTokens": tokens,
                }

    def _make_metric(self, environment: str, use: Use) -> Line:
        application, flag, hour = use
        yes, no = self._counts[environment][use]
        return {
            "appName": application,
            "featureName": flag,
            "environment": environment,
            "timestamp": hour,
            "yes": yes,
            "no": no,
            "variants": self._variants[environment].get(use, {}),
        }


def _cut(items: Iterable[T], size: int) -> list[list[T]]:
    listed = list(items)
    return [listed[first : first + size] for first in range(0, len(listed), size)]


def _count_names(application: Line) -> int:
    return len(application) and 1 + len(application.get("strategies", ()))


class Reports:
    """All methods are called in the event loop."""

    def __init__(self, storage: Storage, ask: Ask, tokens: Tokens, *, interval: float) -> None:
        self._storage, self._ask, self._tokens = storage, ask, tokens
        self._interval = interval
        self._sums = Sums()
        self._journal, self._journal_bytes = uuid.uuid4().hex, 0
        self._is_full = asyncio.Event()
        self._batches: dict[str, bytes | None] = {}  # by id, the oldest first; None if it is on disk
        self._arrived: set[str] = set()  # ids of the arrived parts of batches that have not fully arrived
        self._ids: BoundedDict[str, None] = BoundedDict(MAX_IDS)  # of other relays' reports
        self.received = self.sent = self.dropped = 0
        self.clients = 0
        """Application instances that reported in the last interval."""
        self._read_stored()

    @property
    def waiting(self) -> int:
        """The number of batches that the upstream has not acknowledged."""
        return len(self._batches)

    def check_room(self, identifier: str = "") -> None:
        """Raises ServiceUnavailable if this interval's reports exceed the limit: SDKs keep theirs until the next one.

        Accepts the id of a report that has already been counted.
        """
        if self._sums.names >= MAX_NAMES and identifier not in self._ids:
            raise ServiceUnavailable("Too much is being reported. Try again later.")

    def add(self, line: Line) -> None:
        """Adds a report, and returns once it survives the end of the process, unless the disk fails. An id counts once.

        Raises ServiceUnavailable like `check_room`.
        """
        identifier = line.get("id")
        if identifier in self._ids:
            return
        self.check_room()
        if identifier:
            self._ids[identifier] = None
        text = orjson.dumps(line)
        self._storage.append(f"{JOURNAL}{self._journal}", text)
        self._journal_bytes += len(text)
        if self._journal_bytes > MAX_JOURNAL:
            self._is_full.set()
        self._sums.add(line)
        self.received += 1

    def _read_stored(self) -> None:
        self._batches.update((name.removeprefix(BATCH), None) for name in self._storage.names(BATCH))
        for name in self._storage.names(JOURNAL):
            self._journal, self._sums = name.removeprefix(JOURNAL), Sums()
            for text in (self._storage.read(name) or b"").splitlines():
                if isinstance(line := _read_json(text), dict):
                    self._sums.add(line)
                    if line.get("id"):
                        self._ids[line["id"]] = None
            # A process killed while writing batches may have left some of them, with equal contents.
            self._add_batches(self._store(*self._close_journal()))

    def _close_journal(self) -> "tuple[str, Sums]":
        """Begins the next journal. Returns the last one's id, and its sums."""
        journal, sums = self._journal, self._sums
        self._journal, self._journal_bytes, self._sums = uuid.uuid4().hex, 0, Sums()
        self.clients = sums.clients
        return journal, sums

    def _store(self, journal: str, sums: Sums) -> dict[str, bytes | None]:
        """Makes batches: contents by id, None if they are on disk. Runs in a thread, because both may take a while."""
        batches: dict[str, bytes | None] = {}
        for number, body in enumerate(sums.bodies()):
            content = orjson.dumps(body)
            is_stored = self._storage.write(f"{BATCH}{journal}-{number}", content)
            batches[f"{journal}-{number}"] = None if is_stored else content
        if not any(batches.values()):
            self._storage.delete(f"{JOURNAL}{journal}")
        return batches

    def _add_batches(self, batches: dict[str, bytes | None]) -> None:
        self._batches.update(batches)
        self._drop_oldest()

    def _drop_oldest(self) -> None:
        in_memory = [name for name, content in self._batches.items() if content is not None]
        too_many = list(self._batches)[: max(0, len(self._batches) - MAX_BATCHES)]
        for identifier in {*too_many, *in_memory[: max(0, len(in_memory) - MAX_BATCHES_IN_MEMORY)]}:
            log.error("Reports are dropped: %d batches wait for the upstream", len(self._batches))
            self._forget(identifier)
            self.dropped += 1

    def _forget(self, identifier: str) -> None:
        """Deletes a batch, and with its last batch the journal, if that is still on disk."""
        del self._batches[identifier]
        self._storage.delete(f"{BATCH}{identifier}")
        journal, _, _ = identifier.rpartition("-")
        if not any(other.startswith(f"{journal}-") for other in self._batches):
            self._storage.delete(f"{JOURNAL}{journal}")

    async def keep_sending(self) -> None:
        """A task that sends after each interval."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval * random.uniform(0.7, 1.0)):
                    await self._is_full.wait()
            self._is_full.clear()
            await self.send()

    async def send(self) -> None:
        """Sends all batches, the oldest first, until one is not acknowledged."""
        storing = asyncio.ensure_future(asyncio.to_thread(self._store, *self._close_journal()))
        # Even if this task is cancelled.
        storing.add_done_callback(lambda stored: self._add_batches(stored.result()))
        await asyncio.shield(storing)
        for identifier in list(self._batches):
            try:
                await self._send(identifier)
            except UpstreamFailed as error:
                log.warning("Reports are kept: %s", error)
                return

    async def _send(self, identifier: str) -> None:
        content = self._batches.get(identifier) or self._storage.read(f"{BATCH}{identifier}") or b""
        body = _read_json(content)
        if not isinstance(body, dict):  # dropped since then, or not written by this version
            self._batches.pop(identifier, None)
            return
        environment = body.pop("environment")
        backend = (
            token
            for token in self._tokens.all()
            if token.kind == BACKEND and token.environment == environment
        )
        if (token := next(backend, None)) is None:
            return
        await self._post(token, identifier, body)
        self._arrived = {part for part in self._arrived if part.partition(".")[0] != identifier}
        if identifier in self._batches:
            self._forget(identifier)
        self.sent += 1

    async def _post(self, token: Token, identifier: str, body: Line) -> None:
        """Sends a body, in halves if it is too large for the upstream: Unleash accepts 100 kB. Raises UpstreamFailed.

        Does not send arrived parts again.
        """
        if identifier in self._arrived:
            return
        answer = await self._ask("POST", BULK, token=token.secret, body=body, headers={ID_HEADER: identifier})
        if answer.status == 413 and (halves := _halve(body)):
            for number, half in enumerate(halves):
                await self._post(token, f"{identifier}.{number}", half)
        elif answer.status == 413 and len(orjson.dumps(body)) > SMALL:
            log.error("A part of a report is dropped: it is too large for the upstream")
            self.dropped += 1
        elif answer.status == 400:  # all valid entries have been stored
            log.warning("The upstream refused parts of a report: %s", answer.body[:500])
        elif answer.status not in STORED:
            raise UpstreamFailed(f"The upstream answered {answer.status} to a report.")
        self._arrived.add(identifier)


def _halve(body: Line) -> list[Line]:
    """Splits the body in two; empty if it has a single entry."""
    entries = [(name, entry) for name in LISTS for entry in body.get(name, ())]
    middle = len(entries) // 2
    halves = (entries[:middle], entries[middle:]) if middle else ()
    return [
        {name: [entry for its_list, entry in half if its_list == name] for name in LISTS} for half in halves
    ]


def hour_of(moment: datetime, *, now: datetime) -> str:
    """The hour of a count. A time far ahead, from a fast client clock, counts as an hour from now."""
    moment = max(EARLIEST, min(moment, now + timedelta(hours=1))).astimezone(UTC)
    return moment.replace(minute=0, second=0, microsecond=0).isoformat().replace("+00:00", "Z")


def _read_json(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # the last line of a process that was killed
        return None
