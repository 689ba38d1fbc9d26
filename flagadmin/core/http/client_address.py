"""The client's IP address."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest


def get_client_address(request: HttpRequest) -> str:
    """The client's IP address, also of a DRF request."""
    return choose_address(request.META.get("REMOTE_ADDR") or "", request.META.get("HTTP_X_FORWARDED_FOR", ""))


def get_peer(scope: Any) -> str:
    """The address at the other end of the connection of an RSGI request."""
    return str(scope.client).rpartition(":")[0].strip("[]")


def choose_address(peer: str, forwarded_for: str) -> str:
    """Chooses the client's address from the connection's peer and X-Forwarded-For. Our proxies add the last entry."""
    if settings.BEHIND_PROXY and forwarded_for:
        return forwarded_for.rpartition(",")[2].strip()
    return peer or "unknown"
