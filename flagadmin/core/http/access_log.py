"""The access log: a line for each request, if FLAGADMIN_ACCESS_LOG is on."""

import logging
from typing import Any

from django.http import HttpRequest

log = logging.getLogger("flagadmin.access")


def log_request(
    *, route: str, method: str, status: int, seconds: float, caller: str, address: str, request_id: str
) -> None:
    """`route` is a URL pattern, as in the metrics; `caller` a kind of token, `session` or "" for nobody known.

    URLs, names and the client's own headers are left out: they may contain secrets and personal data.
    """
    fields: dict[str, Any] = {
        "route": route,
        "method": method,
        "status": status,
        "duration_ms": round(seconds * 1000, 1),
        "caller": caller,
        "address": address,
        "requestId": request_id,
    }
    log.info("%s /%s %s", method, route, status, extra=fields)


def get_kind_of_caller(request: HttpRequest) -> str:
    """`admin`, `personal`, `backend` or `frontend` for a token, `session`, or "" if nobody was authenticated.

    Reads what the view has found out, and queries nothing.
    """
    caller = request.__dict__.get("user")
    if (token := getattr(caller, "token", None)) is not None:
        return str(token.kind)
    user = getattr(caller, "user", None) or request.__dict__.get("_cached_user")
    return "session" if getattr(user, "is_authenticated", False) else ""
