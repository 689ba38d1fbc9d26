"""What a person reads on a page."""

import re
from html import unescape
from typing import Any


def page_text(response: Any) -> str:
    """The text of a page, its tags taken out and its spaces made one."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", response.text)))
