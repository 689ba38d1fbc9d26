"""Reads answers of other servers, which may be slow, endless or unpack to anything."""

import time

import requests
from urllib3.exceptions import HTTPError, ProtocolError

CHUNK = 65_536  # bytes that are read, or unpacked, at once


class AnswerTooLarge(requests.RequestException):
    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"its answer has more than {max_bytes:,} bytes")


def read_bounded(answer: requests.Response, *, max_bytes: int, until: float) -> bytes:
    """Reads the body of an answer to a request with ``stream=True``, decompressed.

    ``until`` is of `time.monotonic`: the timeout of requests begins anew with each byte. Raises AnswerTooLarge,
    requests.Timeout, requests.ConnectionError.
    """
    body = bytearray()
    try:
        while chunk := answer.raw.read1(CHUNK, decode_content=True):
            body += chunk
            if len(body) > max_bytes:
                raise AnswerTooLarge(max_bytes)
            if time.monotonic() > until:
                raise requests.Timeout("no complete answer in time")
    except ProtocolError:
        raise requests.ConnectionError("the answer was cut off") from None
    except HTTPError as error:
        raise requests.ConnectionError(error) from error
    return bytes(body)
