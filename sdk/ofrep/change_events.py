"""This worker's streams that tell OpenFeature providers to refetch, and the tickets that open them.

A ticket is part of a URL, and URLs appear in logs. It opens only the stream that says "something has changed", and is
valid for as long as its token.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from django.core import signing
from django.db import connections
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from flagadmin.core.errors import AuthenticationRequired
from groups.access import Caller
from groups.models import ApiToken
from groups.tokens import note_use
from playground.snapshot_cache import load_snapshot_at
from projects.revision import read_revisions
from sdk.delta.states import Scope
from sdk.ofrep.answers import PARAMETER
from sdk.ofrep.refetches import Refetches, State, make_state
from sdk.watcher.token_streams import TokenStreams
from sdk.watcher.watcher import watcher

_threads = ThreadPoolExecutor(2, thread_name_prefix="ofrep events")


async def _read_state(scope: Scope) -> State:
    return await asyncio.get_running_loop().run_in_executor(_threads, read_state, scope)


def read_state(scope: Scope) -> State:
    """Runs in a thread, because it queries the database."""
    try:
        current = read_revisions(scope.projects)
        snapshot = load_snapshot_at(current, scope.environment).snapshot
        return make_state(sorted(current.items()), snapshot)
    finally:
        connections.close_all()


_refetches = Refetches(_read_state)
change_events = TokenStreams(watcher, _refetches.update)


async def watch_clock() -> None:
    """A task of the event loop."""
    await _refetches.watch_clock(change_events)


_HASH = (
    16  # characters of the token's hash, so that a ticket does not match another token that gets the same id
)
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
