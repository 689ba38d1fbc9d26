"""Answers of tools: short, and safe to be read by a model. Whatever people wrote is data: quoted, cut, never raw."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from flagadmin.core.http.request_bodies import ORJSON_OPTIONS
from flagadmin.core.wording import clip

MAX_BYTES = 4_000
MAX_BYTES_ASKED = 64_000
"""The maximum size of an answer for which the caller has said how much to list."""
MAX_TEXT = 400
MIN_TEXT = 20
LEFT_OFF = "leftOff"
_INVISIBLE = {"Cc", "Cf", "Co", "Cs", "Cn"}
_ALLOWED = {"\n", "\t"}


class Whole(str):
    """A text of flagadmin's own that is of no use if it is cut, such as a program."""

    __slots__ = ()


def render_answer(answer: Mapping[str, Any], *, max_bytes: int = MAX_BYTES, max_text: int = MAX_TEXT) -> str:
    """The answer as JSON of at most ``max_bytes``: long lists lose their ends, and then long texts theirs.

    ``leftOff`` says how many entries that were, by the list's name.
    """
    document = _tidy(answer, max_text)
    left_off: dict[str, int] = {}
    while len(text := _dump(document)) > max_bytes:
        lists = list(_find_lists(document))
        name, longest = max(lists, key=lambda item: len(item[1]), default=("", []))
        if len(longest) < 2:
            if max_text <= MIN_TEXT:
                return _dump({"error": "The answer is too long. Ask for less."}).decode()
            return render_answer(answer, max_bytes=max_bytes, max_text=max_text // 2)
        kept = len(longest) // 2
        left_off[name] = left_off.get(name, 0) + len(longest) - kept
        del longest[kept:]
        document[LEFT_OFF] = left_off
    return text.decode()


def _dump(document: Any) -> bytes:
    return orjson.dumps(document, option=ORJSON_OPTIONS)


def _tidy(value: Any, max_text: int) -> Any:
    if isinstance(value, str):
        text = show_invisible(value)
        return text if isinstance(value, Whole) else clip(text, max_text)
    if isinstance(value, Mapping):
        return {_tidy(str(key), max_text): _tidy(each, max_text) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_tidy(each, max_text) for each in value]
    return value


def show_invisible(text: str) -> str:
    """Shows a visible character for each that would hide something, such as a change of direction."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        "\ufffd" if unicodedata.category(letter) in _INVISIBLE and letter not in _ALLOWED else letter
        for letter in text
    )


def _find_lists(value: Any, name: str = "") -> Iterator[tuple[str, list[Any]]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _find_lists(each, key)
    elif isinstance(value, list):
        yield name, value
        for each in value:
            yield from _find_lists(each, name)
