"""The client's IP address."""

from django.conf import settings
from django.http import HttpRequest

from flagadmin.core.http.request_headers import choose_address


def get_client_address(request: HttpRequest) -> str:
    """The client's IP address, also of a DRF request."""
    peer, forwarded_for = request.META.get("REMOTE_ADDR") or "", request.META.get("HTTP_X_FORWARDED_FOR", "")
    return choose_address(peer, forwarded_for, is_behind_proxy=settings.BEHIND_PROXY)
