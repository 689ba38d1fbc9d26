"""The result of a run as a CSV file to download."""

import zlib
from collections.abc import Iterable, Iterator

from django.http import HttpRequest, StreamingHttpResponse
from rest_framework.request import Request

from flagadmin.errors import ValidationError
from flagadmin.http.compression import accepts_gzip
from playground.models import UserRun
from playground.user_runs.evaluate import GZIP
from playground.user_runs.runs import result_parts

MOST_PLAIN = 50_000_000
"""Bytes of a result that is sent without compression."""


def csv_download(request: HttpRequest | Request, run: UserRun) -> StreamingHttpResponse:
    """The result, as it is stored if the client accepts gzip. Raises Conflict, ValidationError."""
    parts: Iterable[bytes] = result_parts(run)
    gzipped = accepts_gzip(request)
    if not gzipped and run.size > MOST_PLAIN:
        raise ValidationError(
            f"The result has {run.size // 1_000_000:,} MB and is only sent compressed. Send Accept-Encoding: gzip "
            "(curl --compressed)."
        )
    response = StreamingHttpResponse(
        parts if gzipped else _unpacked(parts),
        content_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="users-{run.pk}.csv"',
            "Vary": "Accept-Encoding",
        },
    )
    if gzipped:
        response["Content-Encoding"] = "gzip"
    return response


def _unpacked(parts: Iterable[bytes]) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(GZIP)
    return (unpacker.decompress(part) for part in parts)
