"""Extracts the visible text of an HTML page."""

import re
from html import unescape
from typing import Any


def page_text(response: Any) -> str:
    """The text of a page without tags, with whitespace collapsed."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", response.text)))
