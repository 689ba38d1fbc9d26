"""The texts of the OpenAPI document as HTML: paragraphs, lists and code in backticks, which is all that they have."""

import re
from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe


def as_html(text: str) -> SafeString:
    """A description, with lists of ``* …``."""
    return format_html_join(
        "", "{}", ((_block(block),) for block in re.split(r"\n{2,}", text.strip()) if block)
    )


def _block(block: str) -> SafeString:
    if block.startswith("* "):
        items = re.split(r"\n?^\* ", block, flags=re.MULTILINE)[1:]
        return format_html(
            "<ul>{}</ul>", format_html_join("", "<li>{}</li>", ((inline_html(item),) for item in items))
        )
    return format_html("<p>{}</p>", inline_html(block))


def inline_html(text: str) -> SafeString:
    parts: Sequence[str] = re.split(r"``?([^`]+)``?", text)
    opened = (mark_safe("<code>"), mark_safe("</code>"))
    wrapped = ((*opened, part) if odd % 2 else ("", "", part) for odd, part in enumerate(parts))
    return format_html_join("", "{0}{2}{1}", wrapped)
