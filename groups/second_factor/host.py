"""The host name that passkeys belong to and authenticator apps show."""

import ipaddress
from contextlib import suppress
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest


def find_host(request: HttpRequest) -> str:
    """The host name people open. Passkeys belong to it: at another name, browsers do not offer them."""
    return urlsplit(settings.PUBLIC_URL or f"//{request.get_host()}").hostname or ""


def has_passkeys(request: HttpRequest) -> bool:
    """Whether browsers offer passkeys here: they want a host name rather than an address, and HTTPS."""
    host = find_host(request)
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return False
    return request.is_secure() or host == "localhost" or host.endswith(".localhost")
