"""Static files go out packed. WhiteNoise sends packed files that a collecting step has left; here is no such step."""

import gzip
from collections.abc import Callable

from django.conf import settings
from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import patch_vary_headers

PACKED_TYPES = ("text/", "application/javascript", "application/json", "image/svg+xml")
SMALLEST = 500  # bytes; below, packing wins nothing


class PackedStaticFilesMiddleware:
    """Stands before WhiteNoise. Each file is packed once in a worker's life: there are few, and they do not change."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self.packed: dict[tuple[str, str], bytes] = {}

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if not request.path.startswith(settings.STATIC_URL) or not isinstance(response, FileResponse):
            return response
        if not _can_be_packed(response):
            return response
        patch_vary_headers(response, ["Accept-Encoding"])
        if request.method != "GET" or "gzip" not in request.headers.get("Accept-Encoding", ""):
            return response
        return self.pack(request.path, response)

    def pack(self, path: str, response: FileResponse) -> HttpResponse:
        key = path, response.headers.get("Last-Modified", "")
        content = self.packed.get(key)
        if content is None:
            content = self.packed[key] = gzip.compress(response.getvalue(), mtime=0)
        response.close()
        headers = {**response.headers, "Content-Encoding": "gzip", "Content-Length": str(len(content))}
        return HttpResponse(content, headers=headers)


def _can_be_packed(response: FileResponse) -> bool:
    headers = response.headers
    return (
        response.status_code == 200
        and headers.get("Content-Type", "").startswith(PACKED_TYPES)
        and "Content-Encoding" not in headers
        and int(headers.get("Content-Length", 0)) >= SMALLEST
    )
