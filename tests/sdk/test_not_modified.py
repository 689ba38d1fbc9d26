"""What a 304 says replaces headers of the answer that a cache holds, so it says nothing of content."""

from typing import Any

import pytest

from tests.support.cast import client, make_token
from tests.support.flags import make_flag


@pytest.mark.parametrize("path", ["/api/client/features", "/api/client/delta", "/ofrep/v1/evaluate/flags"])
def test_a_304_has_neither_content_type_nor_length(path: str, shop: Any) -> None:
    make_flag("cart", environment="production", enabled=True)
    sdk = client(make_token("backend", projects=["shop"], environment="production"))

    def ask(**headers: str) -> Any:
        if path.startswith("/ofrep"):
            return sdk.post(path, {"context": {"targetingKey": "1"}}, format="json", headers=headers)
        return sdk.get(path, headers=headers)

    known = ask()
    again = ask(**{"If-None-Match": known["ETag"]})
    assert (again.status_code, again["ETag"], again.content) == (304, known["ETag"], b"")
    assert not {"Content-Type", "Content-Length"} & again.headers.keys()
    assert again.get("Cache-Control") == known.get("Cache-Control")
