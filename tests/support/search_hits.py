"""Reads the page of a search."""

import re
from typing import Any


def names(browser: Any, q: str, **more: str) -> dict[str, list[str]]:
    """The names of the hits, by the label of their group."""
    text = browser.get("/search/", {"q": q, **more}).text
    groups = re.findall(r"<h2>(.*?)</h2>\s*<ul>(.*?)</ul>", text, re.DOTALL)
    return {
        label: [re.sub(r"</?mark>", "", name) for name in re.findall(r"<span>(.*?)</span>", hits)]
        for label, hits in groups
    }
