"""A receiver of integrations on 127.0.0.1, which answers as it is told and keeps what it got."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from groups.access import Caller
from integrations.deliveries import sender
from integrations.deliveries.sender import relay
from integrations.models import Integration

LOOPBACK = [ip_network("127.0.0.0/8")]


@dataclass
class Got:
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver:
    """``answer``: path and number of requests before → (status, headers, body)."""

    url: str
    got: list[Got] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    answer: Callable[[str, int], tuple[int, dict[str, str], bytes]] = lambda path, count: (200, {}, b"ok")

    def at(self, path: str) -> list[Got]:
        return [request for request in self.got if request.path == path]


@contextmanager
def receiving() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            count = made.counts[self.path]
            made.counts[self.path] += 1
            made.got.append(
                Got(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            )
            status, headers, text = made.answer(self.path, count)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(text)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST

        def log_message(self, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made = Receiver(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.INTEGRATION_NETWORKS = LOOPBACK
    with receiving() as found:
        yield found


def deliver() -> None:
    """One look at the audit log, and a turn of each integration that may be sent to."""
    relay()
    relay()  # a new database has no position yet
    for claimed in sender.claim():
        sender.send_turn(*claimed)


def later(integration: Integration) -> None:
    """The time until the next attempt has passed."""
    Integration.objects.filter(pk=integration.pk).update(send_after=timezone.now() - timedelta(seconds=1))


def make_integration(url: str, *, provider: str = "webhook", **fields: Any) -> Integration:
    """For each event of flags."""
    secret = {"url": url} | fields.pop("secrets", {})
    secret = {name: value for name, value in secret.items() if value}
    integration = Integration(
        provider=provider,
        events=fields.pop("events", ["feature-created", "feature-archived", "feature-environment-enabled"]),
        **fields,
    )
    integration.set_secrets(secret, [])
    integration.save()
    return integration


__all__ = ["deliver", "later", "make_integration", "receiver", "receiving"]


def happen(*names: str, kind: EventType = EventType.FEATURE_CREATED, **fields: Any) -> None:
    """An event of each of these flags, in its own transaction."""
    for name in names:
        with transaction.atomic():
            record(Event(type=kind, project="shop", feature=name, **fields), actor=Caller.system())


def names_at(receiver: Receiver, path: str = "/hook") -> list[str]:
    return [request.json()["featureName"] for request in receiver.at(path)]


def states(integration: Integration) -> list[str]:
    return [delivery.state for delivery in integration.deliveries.order_by("id")]
