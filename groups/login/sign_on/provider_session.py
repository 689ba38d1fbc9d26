"""Requests to the identity provider. Anybody can cause some, so their time, size and number are bounded."""

import threading
import time
from typing import Any

import orjson
import requests
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.conf import settings

from flagadmin.core.http.bounded_answers import bound, read_bounded

MAX_SECONDS = 5.0  # for one answer, and for each wait within it
MAX_BYTES = 1_000_000
# A provider that does not answer keeps these threads, and no more.
MAX_AT_ONCE = max(1, settings.SERVER_THREADS // 4)

_slots = threading.BoundedSemaphore(MAX_AT_ONCE)


class ProviderSession(requests.Session):
    """Answers that mean success are JSON objects. Follows no redirects: OpenID Connect has none here.

    Raises requests.RequestException, OAuth2Error.
    """

    def __init__(self) -> None:
        super().__init__()
        bound(self)

    def request(self, method: Any, url: Any, **kwargs: Any) -> requests.Response:  # type: ignore[override]
        if not _slots.acquire(blocking=False):
            raise requests.ConnectionError(f"{MAX_AT_ONCE} requests are waiting for it already")
        try:
            until = time.monotonic() + MAX_SECONDS
            bounds: dict[str, Any] = {"timeout": MAX_SECONDS, "stream": True, "allow_redirects": False}
            response = super().request(method, url, **kwargs | bounds)
            with response:
                response._content = read_bounded(response, max_bytes=MAX_BYTES, until=until)
        finally:
            _slots.release()
        _check_answer(response)
        return response


def _check_answer(response: requests.Response) -> None:
    """Names no content but the error: allauth's own messages, which are logged, would contain tokens."""
    if response.status_code >= 500:
        response.raise_for_status()
    if response.is_redirect:
        raise OAuth2Error(f"a redirect to {response.headers['location'][:200]}")
    try:
        # Refuses what would be too deep, or no JSON, for the parsers that read it afterwards.
        answer = orjson.loads(response.content)
    except ValueError as error:
        raise OAuth2Error(f"status {response.status_code}, not JSON: {error}") from error
    if not isinstance(answer, dict):
        raise OAuth2Error("not a JSON object")
    if not response.ok:
        reasons = [str(answer[name])[:200] for name in ("error", "error_description") if name in answer]
        raise OAuth2Error(f"status {response.status_code}: {', '.join(reasons) or 'no reason'}")
    if response.request.method == "POST" and not isinstance(answer.get("access_token"), str):
        raise OAuth2Error("no access token")
    response.json = lambda **_: answer  # type: ignore[method-assign]
    response.headers["content-type"] = "application/json"
