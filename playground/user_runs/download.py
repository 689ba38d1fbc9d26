"""The result of a run as a CSV file to download."""

import codecs
import csv
import zlib
from collections.abc import Iterable, Iterator
from io import StringIO
from itertools import islice

from django.http import HttpRequest, StreamingHttpResponse
from rest_framework.request import Request

from flagadmin.core.errors import ValidationError
from flagadmin.core.http.compression import accepts_gzip
from flagadmin.core.lists.pages import is_for_spreadsheet, quote_formula
from playground.models import UserRun
from playground.user_runs.evaluate import GZIP
from playground.user_runs.runs import read_result

MAX_PLAIN = 50_000_000
"""Bytes of a result that is sent without compression."""
LINES = 1_000  # that are sent together


def make_csv_download(request: HttpRequest | Request, run: UserRun) -> StreamingHttpResponse:
    """The result, as it is stored if the client accepts gzip; ``?spreadsheet=true`` without formulas.

    Raises Conflict, ValidationError.
    """
    parts: Iterable[bytes] = read_result(run)
    gzipped = accepts_gzip(request)
    if not gzipped and run.size > MAX_PLAIN:
        raise ValidationError(
            f"The result has {run.size // 1_000_000:,} MB and is only sent compressed. Send Accept-Encoding: gzip "
            "(curl --compressed)."
        )
    if is_for_spreadsheet(request):
        quoted = _quote_formulas(_unpack(parts))
        parts = _pack(quoted) if gzipped else quoted
    elif not gzipped:
        parts = _unpack(parts)
    response = StreamingHttpResponse(
        parts,
        content_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="users-{run.pk}.csv"',
            "Vary": "Accept-Encoding",
        },
    )
    if gzipped:
        response["Content-Encoding"] = "gzip"
    return response


def _unpack(parts: Iterable[bytes]) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(GZIP)
    return (unpacker.decompress(part) for part in parts)


def _pack(parts: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(1, wbits=GZIP)
    for part in parts:
        yield packer.compress(part)
    yield packer.flush()


def _quote_formulas(parts: Iterable[bytes]) -> Iterator[bytes]:
    rows = csv.reader(_split_lines(parts))
    while some := list(islice(rows, LINES)):
        text = StringIO()
        csv.writer(text).writerows(map(quote_formula, row) for row in some)
        yield text.getvalue().encode()


def _split_lines(parts: Iterable[bytes]) -> Iterator[str]:
    decode = codecs.getincrementaldecoder("utf-8")().decode
    rest = ""
    for part in parts:
        *lines, rest = (rest + decode(part)).split("\n")
        yield from (f"{line}\n" for line in lines)
