"""Static files, packed for those who can unpack them."""

import gzip

import pytest

STYLES = "/static/flagadmin/app.css"


def test_a_static_file_is_packed(client, db):
    plain = client.get(STYLES)
    packed = client.get(STYLES, headers={"Accept-Encoding": "gzip, br"})

    assert "Content-Encoding" not in plain.headers
    assert packed["Content-Encoding"] == "gzip"
    assert packed["Vary"] == plain["Vary"] == "Accept-Encoding"
    assert int(packed["Content-Length"]) == len(packed.content) < int(plain["Content-Length"]) / 2
    assert gzip.decompress(packed.content) == plain.getvalue()
    assert packed["Content-Type"] == plain["Content-Type"]
    assert "default-src" in packed["Content-Security-Policy"]


def test_what_is_known_already_is_not_sent_again(client, db):
    known = client.get(STYLES, headers={"Accept-Encoding": "gzip"})["Last-Modified"]
    again = client.get(STYLES, headers={"Accept-Encoding": "gzip", "If-Modified-Since": known})

    assert again.status_code == 304
    assert again.getvalue() == b""


@pytest.mark.parametrize("address", ["/static/nothing.css", "/healthz"])
def test_nothing_else_is_touched(client, db, address):
    assert "Content-Encoding" not in client.get(address, headers={"Accept-Encoding": "gzip"}).headers
