"""The relay's health: for probes, for Prometheus, for queries about the age of its flags, and for the upstream.

flagadmin has a page of the relays that report to it; Unleash does not ask for reports.

Streams: report changes, or the fact of a change, and end when their token changes.
"""

import asyncio
import hmac
import logging
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from flagadmin import __version__
from flagadmin.core.errors import AppError, AuthenticationRequired, NotFound
from flagadmin.core.server.event_streams import (
    CONTENT_TYPE,
    HEADERS,
    EventStream,
    EventStreams,
    make_event_parts,
)
from flagadmin.core.server.loop_routes import Headers, StreamRequest
from relay.copy import Copy
from relay.http import Ready, Request, prepare, read_path, respond_error, respond_json
from relay.options import Options
from relay.reports import Reports
from relay.storage import Storage
from relay.tokens import BACKEND, Ask, Scope, Token, Tokens, UpstreamFailed
from sdk.ofrep.refetches import Refetches, State, make_state
from sdk.streaming.scope_streams import CONNECTED, UPDATED, ScopeStreams, Step, tell_changes

MAX_STREAMS = 20_000

Opened = Callable[[EventStream], Callable[[], None]]


class Subscription(NamedTuple):
    """The request of a stream: the token at that time, and the client's version."""

    token: Token
    version: int | None

    @property
    def scope(self) -> Scope:
        return self.token.scope


class Beginning:
    """The first event of a stream, in parts. ``stream`` is called once the client has read it."""

    def __init__(self, stream: Opened, parts: Iterable[bytes] = ()) -> None:
        self.stream, self._parts = stream, parts

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._parts)


class Streams:
    """All methods are called in the event loop."""

    def __init__(self, tokens: Tokens, copy: Copy) -> None:
        self._tokens, self._copy = tokens, copy
        self._open = EventStreams(lambda: MAX_STREAMS)
        self._stopping = asyncio.Event()
        self._refetches = Refetches(self._read_state)
        self._of_sdks = ScopeStreams(tell_changes(self._find_steps))
        self._of_providers = ScopeStreams(self._refetches.update)
        copy.when_changed = self._look

    def __len__(self) -> int:
        return len(self._open)

    async def serve(
        self, begin: Callable[[], Awaitable[Beginning]], scope: Any, protocol: Any, headers: Headers
    ) -> None:
        """Sends the result of ``begin``, or the error that it raises, and keeps the response open."""

        async def ask() -> tuple[Ready, Beginning | None]:
            try:
                self._open.check_room()
                return Ready(200, [("Content-Type", CONTENT_TYPE), *HEADERS.items(), *headers]), await begin()
            except AppError as error:
                refusal = respond_error(read_path(scope), error)
                return refusal._replace(headers=refusal.headers + headers), None

        request = StreamRequest(scope, protocol, self._stopping, ask)
        await self._open.serve(request, lambda opened, stream: opened(stream))

    def begin_changes(self, token: Token, version: int | None) -> Beginning:
        """Begins a stream to SDKs, with everything or with the changes since the version."""
        changes = self._copy.changes(token.scope)
        assert changes is not None
        parts = make_event_parts(CONNECTED, changes.events(version).parts(), identifier=changes.version)
        return Beginning(partial(self._opened, self._of_sdks, Subscription(token, changes.version)), parts)

    def begin_refetches(self, token: Token, version: int | None) -> Beginning:
        """Begins a stream that tells OpenFeature providers to refetch, unless the version is the same."""
        return Beginning(partial(self._opened, self._of_providers, Subscription(token, version)))

    def _opened(
        self, streams: ScopeStreams, subscription: Subscription, stream: EventStream
    ) -> Callable[[], None]:
        closed = streams.opened(subscription, stream)
        if not self._may_stay(subscription):
            stream.end()
        return closed

    def _may_stay(self, subscription: Subscription) -> bool:
        return self._tokens.get(subscription.token.secret) == subscription.token

    def _look(self) -> None:
        """Called when tokens or flags may have changed."""
        for streams in (self._of_sdks, self._of_providers):
            streams.end_invalid(self._may_stay)
            streams.bring_all_up_to_date()

    async def _find_steps(self, scope: Scope, versions: Collection[int | None]) -> dict[int | None, Step]:
        changes = self._copy.changes(scope)
        if changes is None:  # no token can read them any more
            return {}
        latest = changes.version
        return {
            version: (
                latest,
                tuple(make_event_parts(UPDATED, changes.events(version).parts(), identifier=latest)),
            )
            for version in versions
            if version != latest
        }

    async def _read_state(self, scope: Scope) -> State:
        prepared = await prepare(await self._copy.find_part(scope))
        return make_state(prepared.state, prepared.snapshot)

    async def keep_alive(self) -> None:
        """A task."""
        await self._open.keep_alive()

    async def watch_clock(self) -> None:
        """A task."""
        await self._refetches.watch_clock(self._of_providers)

    def end(self) -> None:
        """Ends all streams, because the relay stops."""
        self._stopping.set()


_FIGURES = {
    "flagadmin_relay_tokens": "Tokens known.",
    "flagadmin_relay_scopes": "Sets of flags that are kept.",
    "flagadmin_relay_flags_age_seconds": "Since the oldest flags were last known to be right.",
    "flagadmin_relay_upstream_lost_seconds": "Since the upstream last answered; 0 while it does.",
    "flagadmin_relay_reports_received": "Usage reports taken in since the start.",
    "flagadmin_relay_batches_sent": "Batches that the upstream has acknowledged since the start.",
    "flagadmin_relay_batches_waiting": "Batches that it has not acknowledged.",
    "flagadmin_relay_batches_dropped": "Batches dropped because too many waited.",
    "flagadmin_relay_disk_failed": "1 if the data directory cannot be written.",
}


class Health:
    def __init__(
        self, options: Options, storage: Storage, tokens: Tokens, copy: Copy, reports: Reports
    ) -> None:
        self._options, self._storage = options, storage
        self._tokens, self._copy, self._reports = tokens, copy, reports
        self._begun = time.time()
        self._registry = CollectorRegistry()
        self._gauges = {name: Gauge(name, text, registry=self._registry) for name, text in _FIGURES.items()}
        self.routes: dict[tuple[str, str], Any] = {("GET", "/metrics"): self.get_metrics}
        for path in ("/health", "/healthz", "/internal-backstage/health"):
            self.routes["GET", path] = self.get_health
        for path in ("/ready", "/readyz", "/internal-backstage/ready"):
            self.routes["GET", path] = self.get_ready

    async def get_health(self, request: Request) -> Ready:
        return respond_json(self.describe())

    async def get_ready(self, request: Request) -> Ready:
        """Ready once it has flags of any age, or no tokens yet, which clients will bring."""
        is_ready = bool(self._copy.scopes or not len(self._tokens))
        return respond_json(self.describe(), 200 if is_ready else 503)

    def describe(self) -> dict[str, Any]:
        faults = [fault for fault in (self._copy.fault, self._storage.fault) if fault]
        return {
            "health": "DEGRADED" if faults else "GOOD",
            "version": __version__,
            "region": self._options.region,
            "flagsAgeSeconds": int(self._copy.age()),
            "secondsWithoutUpstream": int(self._measure_seconds_lost()),
            "tokens": len(self._tokens),
            "batchesWaiting": self._reports.waiting,
            **({"faults": faults} if faults else {}),
        }

    def _measure_seconds_lost(self) -> float:
        return max(0.0, time.time() - (self._copy.heard_at or self._begun)) if self._copy.fault else 0.0

    async def get_metrics(self, request: Request) -> Ready:
        """404 without a metrics token in the settings, 401 without that token in the request."""
        token = self._options.metrics_token
        if not token:
            raise NotFound
        if not hmac.compare_digest(
            request.headers.get("authorization", "").encode(), f"Bearer {token}".encode()
        ):
            raise AuthenticationRequired("Send the token of /metrics.")
        for name, value in zip(self._gauges, self._make_figures(), strict=True):
            self._gauges[name].set(value)
        return Ready(200, [("content-type", CONTENT_TYPE_PLAIN_0_0_4)], generate_latest(self._registry))

    def _make_figures(self) -> list[float]:
        reports = self._reports
        return [
            len(self._tokens),
            self._copy.scopes,
            self._copy.age(),
            self._measure_seconds_lost(),
            reports.received,
            reports.sent,
            reports.waiting,
            reports.dropped,
            float(bool(self._storage.fault)),
        ]


log = logging.getLogger("flagadmin.relay")

PATH = "/api/client/relays"
FILE = "identity"
FIRST = 5.0  # seconds after the start, at most
WITHOUT = 3_600.0  # seconds before an upstream that does not support relays gets another report
MAX_BEHIND = 999
MAX_REGION = 100  # characters
FORGOTTEN = 3_600.0  # seconds after which a silent relay behind this one is no longer reported

Report = dict[str, Any]


class Presence:
    def __init__(
        self,
        options: Options,
        storage: Storage,
        ask: Ask,
        tokens: Tokens,
        health: Health,
        reports: Reports,
        streams: Streams,
    ) -> None:
        self._options, self._ask, self._tokens = options, ask, tokens
        self._health, self._reports, self._streams = health, reports, streams
        self._begun = time.monotonic()
        self._behind: dict[str, tuple[float, Report]] = {}  # by id: the time and the content of the report
        self._identity = (storage.read(FILE) or b"").decode(errors="replace")
        if not self._identity:
            self._identity = uuid.uuid4().hex
            storage.write(FILE, self._identity.encode())

    def take(self, reports: list[Report]) -> None:
        """Takes the reports of relays behind this one, the latest of each."""
        now = time.monotonic()
        self._behind = {id_: kept for id_, kept in self._behind.items() if now - kept[0] < FORGOTTEN}
        for report in reports:
            at = now - report.pop("secondsAgo", 0)
            known_at, _ = self._behind.get(report["id"], (at, None))
            if at >= known_at and (report["id"] in self._behind or len(self._behind) < MAX_BEHIND):
                self._behind[report["id"]] = at, report

    def describe(self) -> list[Report]:
        now = time.monotonic()
        own = {
            "id": self._identity,
            "uptimeSeconds": int(now - self._begun),
            "intervalSeconds": self._options.report,
            "clients": self._reports.clients,
            "streams": len(self._streams),
            **self._health.describe(),
            "region": self._options.region[:MAX_REGION],
        }
        return [own, *(report | {"secondsAgo": now - at} for at, report in self._behind.values())]

    async def keep_telling(self) -> None:
        """A task that reports after each interval."""
        await asyncio.sleep(random.uniform(0.0, min(FIRST, self._options.report)))
        while True:
            is_known = await self.tell()
            wait = self._options.report if is_known else WITHOUT
            await asyncio.sleep(wait * random.uniform(0.9, 1.0))

    async def tell(self) -> bool:
        """Reports to the upstream. Returns false if the upstream does not support such reports."""
        token = next((token for token in self._tokens.all() if token.kind == BACKEND), None)
        if token is None:
            return True
        try:
            answer = await self._ask("POST", PATH, token=token.secret, body={"relays": self.describe()})
        except UpstreamFailed as error:
            log.debug("The upstream was not told of this relay: %s", error)
            return True
        return answer.status != 404
