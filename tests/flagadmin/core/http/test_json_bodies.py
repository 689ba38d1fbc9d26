"""The bounds of a JSON document: what is beyond them is refused before it is parsed."""

import pytest

from flagadmin.core.errors import ValidationError
from flagadmin.core.http import json_bodies
from flagadmin.core.http.json_bodies import Bounds, read_json

TEN = Bounds(containers=10)


@pytest.mark.parametrize("inner", [b"{}", b"[]", b'{"a":1}'])
def test_too_many_objects_and_lists_are_not_made(inner: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    read_json(b"[" + b",".join([inner] * 9) + b"]", TEN)
    monkeypatch.setattr(json_bodies, "parse_json", lambda body: pytest.fail("it was parsed"))
    with pytest.raises(ValidationError, match="at most 10 objects and lists"):
        read_json(b"[" + b",".join([inner] * 10) + b"]", TEN)


def test_brackets_in_a_string_are_no_objects() -> None:
    text = b'["' + b"{[" * 20 + b'\\"' + b"[" * 20 + b'"]'
    assert read_json(text, TEN) == ["{[" * 20 + '"' + "[" * 20]
