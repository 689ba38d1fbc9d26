"""The APIs for edge proxies and relays: validation of tokens, and reports of relays."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.core.http.request_bodies import FreedBodies
from groups.authentication import ApiRequest
from groups.models import ApiToken
from groups.tokens import hash_secret
from projects.models import Relay
from projects.relays.reports import store_relays
from sdk import schemas as wire
from sdk.base import ClientView, get_token
from sdk.reports.api import ACCEPTED

SECRET = "default:development.<56 hexadecimal digits>"
EXAMPLE = {
    "tokens": [{"token": SECRET, "type": "client", "projects": ["default"], "environment": "development"}]
}
# Edge proxies call backend tokens "client" tokens.
TYPES = {ApiToken.Kind.BACKEND: "client"}


class ValidateTokensView(FreedBodies, APIView):
    tags = ("Client",)
    authentication_classes = ()
    permission_classes = ()

    @extend_schema(
        operation_id="getValidTokens",
        auth=[],
        request=wire.Tokens,
        responses={200: wire.ValidTokens},
        examples=[
            OpenApiExample("Tokens", value={"tokens": [SECRET]}, request_only=True),
            OpenApiExample("Valid tokens", value=EXAMPLE, response_only=True),
        ],
    )
    def post(self, request: Request) -> Response:
        """List which of these tokens are valid, with their projects.

        Needs no permission, because the caller already has the tokens.
        """
        body = wire.read(wire.Tokens, request.data)
        return Response({"tokens": find_valid_tokens(body.tokens)})


def find_valid_tokens(secrets: Sequence[str]) -> list[dict[str, Any]]:
    """The valid tokens without duplicates, in the order of the request."""
    hashes = {hash_secret(secret): secret for secret in secrets}
    usable_tokens = ApiToken.objects.filter(pending_scope__isnull=True).exclude(kind=ApiToken.Kind.PERSONAL)
    tokens = usable_tokens.filter(secret_hash__in=hashes)
    now = timezone.now()
    documents = {
        hashes[token.secret_hash]: _make_document(hashes[token.secret_hash], token)
        for token in tokens.prefetch_related("scopes")
        if not token.has_expired(now)
    }
    return [documents[secret] for secret in dict.fromkeys(secrets) if secret in documents]


def _make_document(secret: str, token: ApiToken) -> dict[str, Any]:
    return {
        "token": secret,
        "type": TYPES.get(ApiToken.Kind(token.kind), token.kind),
        "projects": ["*"] if token.all_projects else sorted(s.project_id for s in token.scopes.all()),
        "environment": token.environment_id or "*",
    }


EXAMPLE_OF_RELAYS = {
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
        examples=[OpenApiExample("A relay", value=EXAMPLE_OF_RELAYS, request_only=True)],
    )
    def post(self, request: ApiRequest) -> Response:
        """Report how a relay is, and those behind it. The last report of each is kept."""
        body = wire.read(wire.RelayReports, request.data)
        now = timezone.now()
        token = get_token(request).pk
        store_relays([_make_relay(report, token, now) for report in body.relays])
        return Response(status=202)


def _make_relay(report: wire.RelayReport, token: int, now: datetime) -> Relay:
    heard_at = now - timedelta(seconds=report.secondsAgo)
    return Relay(
        identifier=report.id,
        token_id=token,
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
