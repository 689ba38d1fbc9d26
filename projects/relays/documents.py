"""Documents of relays for the API."""

from datetime import datetime
from typing import Any

from flagadmin.core.http.timestamps import iso
from projects.models import Relay
from projects.relays.states import describe_state, find_state


def make_relay_document(relay: Relay, now: datetime) -> dict[str, Any]:
    return {
        "id": relay.identifier,
        "region": relay.region,
        "state": find_state(relay, now),
        "description": describe_state(relay, now),
        "version": relay.version,
        "startedAt": iso(relay.started_at),
        "lastReportAt": iso(relay.heard_at),
        "flagsReadAt": iso(relay.flags_read_at),
        "tokens": relay.tokens,
        "clients": relay.clients,
        "streams": relay.streams,
        "batchesWaiting": relay.batches_waiting,
    }
