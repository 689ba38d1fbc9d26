"""What axe finds on a page: all its rules, but the dearest only once for each combination of elements in a process."""

from functools import cache
from pathlib import Path
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT, AxeResults
from playwright.sync_api import Page, expect

# Without preloading: it writes styles into the page, which the policy refuses, and no rule here needs it.
# Only violations are described: describing what passed takes longer than finding it.
_OPTIONS = {"preload": False, "resultTypes": ["violations"]}
_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# What depends on the width or the theme alone, and takes long: only where the combination of elements is new.
_CLOSER = ["color-contrast", "link-in-text-block", "target-size", "scrollable-region-focusable"]
_SETTINGS = {
    "rules": _OPTIONS | {"runOnly": _TAGS, "rules": {name: {"enabled": False} for name in _CLOSER[:3]}},
    "closer": _OPTIONS
    | {
        "resultTypes": ["violations", "passes"],
        "elementRef": True,
        "runOnly": {"type": "rule", "values": _CLOSER},
    },
}
_known: dict[str, None] = {}


@cache
def _script() -> str:
    return Path(__file__).with_suffix(".js").read_text()


def check_always(page: Page) -> None:
    """Gives axe to each document that this page loads: quicker than giving it to many of them one by one."""
    page.add_init_script(AXE_SCRIPT)


def find_violations(page: Page, *, again: bool = False) -> str:
    """The report of what axe finds on the page once no part of it is being redrawn, "" if nothing.

    ``again``: of a document that has been looked at, with another width or theme. Only rules that depend on those run,
    unless elements of a new kind appeared.
    """
    page.wait_for_load_state()
    expect(page.locator(".htmx-request, [aria-busy=true]")).to_have_count(0)
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found: dict[str, Any] = page.evaluate(_script(), _SETTINGS | {"known": " ".join(_known), "again": again})
    _known.update(dict.fromkeys(found["learned"]))
    return AxeResults(found).generate_report() if found["violations"] else ""
