"""A relay's answers: flags as they are, and evaluated for contexts."""

import asyncio

from flagadmin.core.http.request_headers import accepts_gzip
from relay.flags import Body, Flags
from relay.http import JSON, Ready, Request
from sdk.evaluation.prepared import Answer, Prepared
from sdk.spec_header import HEADER

MIN_COMPRESSED = 1_000  # bytes


async def prepare(flags: Flags) -> Prepared:
    return flags.prepare() if flags.is_prepared else await asyncio.to_thread(flags.prepare)


async def respond_body(request: Request, body: Body) -> Ready:
    headers = [
        ("etag", body.etag),
        ("cache-control", "no-cache"),
        ("vary", f"Authorization, Accept-Encoding, {HEADER}"),
    ]
    if request.knows(body.etag):
        return Ready(304, headers)
    if accepts_gzip(request.headers.get("accept-encoding", "")) and len(body.body) >= MIN_COMPRESSED:
        content = body.get_bytes(gzipped=True) or await asyncio.to_thread(lambda: body.gzipped)
        return Ready(200, [JSON, ("content-encoding", "gzip"), *headers], content)
    return Ready(200, [JSON, *headers], body.body)


def respond_answer(answer: Answer | None) -> Ready:
    assert answer is not None
    headers = [("cache-control", "no-cache")]
    if answer.etag:
        headers.append(("etag", answer.etag))
    if answer.body is None:
        return Ready(304, headers)
    return Ready(200, [JSON, *headers], answer.body)
