"""304: the client has the answer already (RFC 9110, 13.1.2)."""

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from rest_framework.request import Request

from flagadmin.core.http.etag_lists import is_listed, read_etags


def is_known(request: HttpRequest | Request, etag: str) -> bool:
    """Whether If-None-Match contains this ETag, by weak comparison."""
    return is_listed(request.headers.get("If-None-Match", ""), etag)


def read_known_etags(request: HttpRequest | Request) -> list[str]:
    """The ETags in If-None-Match as strong ones, or ``["*"]``."""
    return read_etags(request.headers.get("If-None-Match", ""))


def not_modified(etag: str) -> HttpResponse:
    """Without a content type: caches may take headers over, and serve the flags they hold as that."""
    return HttpResponseNotModified(headers={"ETag": etag})
