"""POST /api/client/relays: relays say how they are."""

from datetime import datetime, timedelta

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response

from groups.authentication import ApiRequest
from projects.models import Relay
from projects.relays.reports import store_relays
from sdk import schemas as wire
from sdk.base import ClientView
from sdk.reports.register import ACCEPTED

EXAMPLE = {
    "relays": [
        {
            "id": "5f0c1e0d2a7b4c55",
            "region": "eu",
            "version": "1.3.0",
            "uptimeSeconds": 86400,
            "intervalSeconds": 60,
            "flagsAgeSeconds": 3,
            "tokens": 12,
            "clients": 40,
            "streams": 3,
            "batchesWaiting": 0,
            "faults": [],
        }
    ]
}


class RelaysView(ClientView):
    @extend_schema(
        operation_id="reportRelays",
        request=wire.RelayReports,
        responses={202: ACCEPTED},
        examples=[OpenApiExample("A relay", value=EXAMPLE, request_only=True)],
    )
    def post(self, request: ApiRequest) -> Response:
        """Report how a relay is, and those behind it. The last report of each is kept."""
        body = wire.read(wire.RelayReports, request.data)
        now = timezone.now()
        store_relays([_make_relay(report, now) for report in body.relays])
        return Response(status=202)


def _make_relay(report: wire.RelayReport, now: datetime) -> Relay:
    heard_at = now - timedelta(seconds=report.secondsAgo)
    return Relay(
        identifier=report.id,
        region=report.region,
        version=report.version,
        started_at=heard_at - timedelta(seconds=report.uptimeSeconds),
        heard_at=heard_at,
        interval=report.intervalSeconds,
        flags_age=report.flagsAgeSeconds,
        tokens=report.tokens,
        clients=report.clients,
        streams=report.streams,
        batches_waiting=report.batchesWaiting,
        faults=report.faults,
    )
