"""A JSON body that is put together from chunks when it is first needed."""

from collections.abc import Iterator, Sequence
from threading import Lock

from flagadmin.core.http.gzip_member import make_gzip_member
from sdk.features.chunks import Chunk

MAX_KEPT = 16_000_000  # bytes: the largest body that is kept as it is


class ChunkedBody:
    """Its bytes are kept. Large ones are kept compressed only: most SDKs take gzip, and joining them takes a
    millisecond for a megabyte.
    """

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self._making = Lock()
        self._body = self._gzipped = b""

    @property
    def body(self) -> bytes:
        # Without waiting for others: an event loop would wait for whoever compresses.
        body = self._body or self._join()
        if len(body) <= MAX_KEPT:
            self._body = body
        return body

    def join_small(self) -> None:
        """Joins the body, unless it would be too large to be kept."""
        if sum(chunk.size for chunk in self._chunks) <= MAX_KEPT:
            self._body = self._join()

    def parts(self) -> Iterator[bytes]:
        """Yields the parts that the body is joined from; the whole, if it is kept."""
        if self._body:
            yield self._body
            return
        for chunk in self._chunks:
            yield from chunk.parts()

    @property
    def gzipped(self) -> bytes:
        with self._making:
            if not self._gzipped:
                self._gzipped = make_gzip_member(chunk.deflated for chunk in self._chunks)
            return self._gzipped

    def get_bytes(self, *, gzipped: bool) -> bytes:
        """The bytes if they have been made, else b"". Never waits."""
        return self._gzipped if gzipped else self._body

    def _join(self) -> bytes:
        return b"".join(chunk.raw for chunk in self._chunks)
