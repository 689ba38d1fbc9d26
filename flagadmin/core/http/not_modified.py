"""304: the client has the answer already (RFC 9110, 13.1.2)."""

from django.http import HttpRequest, HttpResponse
from django.utils.http import parse_etags
from rest_framework.request import Request


def is_known(request: HttpRequest | Request, etag: str) -> bool:
    """Whether If-None-Match contains this ETag, by weak comparison."""
    known = known_etags(request)
    return known == ["*"] or etag.removeprefix("W/") in known


def known_etags(request: HttpRequest | Request) -> list[str]:
    """The ETags in If-None-Match as strong ones, or ``["*"]``."""
    return [tag.removeprefix("W/") for tag in parse_etags(request.headers.get("If-None-Match", ""))]


def not_modified(etag: str) -> HttpResponse:
    return HttpResponse(status=304, headers={"ETag": etag})
