"""The relay's health: for probes, for Prometheus, and for whoever asks how old its flags are."""

import hmac
import time
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from flagadmin import __version__
from flagadmin.core.errors import AuthenticationRequired, NotFound
from relay.copy import Copy
from relay.http import Ready, Request, respond_json
from relay.options import Options
from relay.reports import Reports
from relay.storage import Storage
from relay.tokens import Tokens

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
        """Ready with flags, however old, and without tokens, which clients will bring."""
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
        """404 without a token for it, 401 without that token."""
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
