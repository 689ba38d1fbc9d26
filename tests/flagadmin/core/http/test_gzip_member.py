"""Parts compressed one by one are one gzip member."""

import gzip
import zlib

from hypothesis import given
from hypothesis import strategies as st

from flagadmin.core.http.gzip_member import deflate, make_gzip_member


@given(st.lists(st.binary(max_size=300)))
def test_it_holds_all_parts(parts: list[bytes]) -> None:
    member = make_gzip_member(map(deflate, parts))
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)  # of one member; checks the trailer
    assert inflater.decompress(member) == b"".join(parts)
    assert inflater.eof
    assert inflater.unused_data == b""


def test_large_parts() -> None:
    parts = [b"a" * 3_000_000, bytes(range(256)) * 5_000, b"", b"z"]
    assert gzip.decompress(make_gzip_member(map(deflate, parts))) == b"".join(parts)


def test_a_part_can_be_used_again() -> None:
    part = deflate(b"0123456789" * 1_000)
    assert gzip.decompress(make_gzip_member([part, part, part])) == b"0123456789" * 3_000
