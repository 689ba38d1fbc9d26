"""The text of an HTML page, and of a sentence about a change, without markup and links."""

import csv
import io
import re
from collections.abc import Sequence
from html import unescape
from typing import Any

from projects.history.descriptions import Part


def page_text(response: Any) -> str:
    """The text of a page without tags, with whitespace collapsed."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", response.text)))


def sentence_text(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts)


def csv_rows(response: Any) -> list[list[str]]:
    """A download of comma-separated values; the first row is the header."""
    return list(csv.reader(io.StringIO(b"".join(response.streaming_content).decode())))
