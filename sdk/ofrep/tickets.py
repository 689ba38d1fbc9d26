"""Tickets: what an event stream is opened with, because a browser's EventSource sends no header.

A ticket stands in a URL, and URLs stand in logs. It opens nothing but the stream that says "something has changed",
and is good for as long as its token.
"""

from django.core import signing
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from flagadmin.core.errors import AuthenticationRequired
from groups.access import Caller
from groups.models import ApiToken
from groups.tokens import note_use
from sdk.ofrep.answers import PARAMETER

_HASH = 16  # characters of the token's hash, so that a ticket is not another token's that gets the same id
_signer = signing.Signer(salt="playground.ofrep.events")


def ticket_of(token: ApiToken) -> str:
    return ticket_for(token.pk, token.secret_hash)


def ticket_for(token: int, secret_hash: str) -> str:
    """Always the same for a token, so that clients keep their stream open."""
    return _signer.sign(f"{token}.{secret_hash[:_HASH]}")


class TicketAuthentication(BaseAuthentication):
    """Authenticates ``?ticket=…`` as its token."""

    def authenticate(self, request: Request) -> tuple[Caller, ApiToken] | None:
        ticket = request.query_params.get(PARAMETER)
        if not ticket:
            return None
        token = _token_of(ticket)
        if token is None or token.has_expired(timezone.now()):
            raise AuthenticationRequired("This ticket is not valid any more. Evaluate the flags for another.")
        note_use(token)
        return Caller(user=token.user, token=token), token


def _token_of(ticket: str) -> ApiToken | None:
    try:
        key, _, start = _signer.unsign(ticket).partition(".")
    except signing.BadSignature:
        return None
    return ApiToken.objects.filter(pk=int(key), secret_hash__startswith=start).first()
