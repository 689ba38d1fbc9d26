"""What the content security policy and the style of the house ask of every template and script."""

import re

import pytest

from tests.support.paths import ROOT

TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
FORBIDDEN = {
    "style attribute": re.compile(r"<[^>]*\sstyle\s*="),
    "event attribute": re.compile(r"<[^>]*\son[a-z]+\s*="),
    "inline script": re.compile(r"<script(?![^>]*\ssrc=)[^>]*>"),
    "inline style": re.compile(r"<style[\s>]"),
    "written-out URL": re.compile(r"""\s(?:href|action|formaction|hx-(?:get|post))=["']/"""),
    "other host": re.compile(r"""(?:src|href|action)\s*=\s*["']?(?:https?:)?//"""),
}
LINES = 60


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_it_is_short_and_brings_nothing_that_browsers_would_refuse(template):
    text = template.read_text()

    assert [name for name, pattern in FORBIDDEN.items() if pattern.search(text)] == []
    assert len(text.splitlines()) <= LINES


@pytest.mark.parametrize("name", ["app.js", "app.css", "admin.css"])
def test_what_browsers_run_names_no_other_host(name):
    text = (ROOT / "flagadmin" / "static" / "flagadmin" / name).read_text()

    assert not re.search(r"https?://|@import|eval\(|innerHTML", text)
