"""Tells the upstream how this relay is, and those behind it. flagadmin has a page of them; Unleash does not ask."""

import asyncio
import logging
import random
import time
import uuid
from typing import Any

from relay.health import Health
from relay.options import Options
from relay.reports import Reports
from relay.storage import Storage
from relay.streams import Streams
from relay.tokens import BACKEND, Ask, Tokens
from relay.upstream import UpstreamFailed

log = logging.getLogger("flagadmin.relay")

PATH = "/api/client/relays"
FILE = "identity"
FIRST = 5.0  # seconds from the start, at most
WITHOUT = 3_600.0  # seconds until an upstream that does not know relays is told again
MAX_BEHIND = 999
MAX_REGION = 100  # characters
FORGOTTEN = 3_600.0  # seconds after which a relay behind is no longer passed on

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
        self._behind: dict[str, tuple[float, Report]] = {}  # by id when it said so, and what
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
        """A task: tells after each interval."""
        await asyncio.sleep(random.uniform(0.0, min(FIRST, self._options.report)))
        while True:
            is_known = await self.tell()
            wait = self._options.report if is_known else WITHOUT
            await asyncio.sleep(wait * random.uniform(0.9, 1.0))

    async def tell(self) -> bool:
        """Whether the upstream takes such reports, as far as can be told."""
        token = next((token for token in self._tokens.all() if token.kind == BACKEND), None)
        if token is None:
            return True
        try:
            answer = await self._ask("POST", PATH, token=token.secret, body={"relays": self.describe()})
        except UpstreamFailed as error:
            log.debug("The upstream was not told of this relay: %s", error)
            return True
        return answer.status != 404
