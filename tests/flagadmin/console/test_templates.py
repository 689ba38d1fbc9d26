"""Every template and script complies with the content security policy and the style rules."""

import re

import pytest

from tests.support.paths import ROOT

TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
STATIC = sorted(path for path in (ROOT / "flagadmin").rglob("*") if path.suffix in {".css", ".js"})
FORBIDDEN = {
    "style attribute": re.compile(r"<[^>]*\sstyle\s*="),
    "event attribute": re.compile(r"<[^>]*\son[a-z]+\s*="),
    "inline script": re.compile(r"<script(?![^>]*\ssrc=)[^>]*>"),
    "inline style": re.compile(r"<style[\s>]"),
    "written-out URL": re.compile(r"""\s(?:href|(?:form)?action|hx-(?:get|post)|back|cancel)=["']/"""),
    # What is unseen is a box of its own: browsers read "Review : cart", with a space.
    "punctuation before which there is a space": re.compile(r"""class="unseen">[:,;.]"""),
    "other host": re.compile(r"""(?:src|href|action)\s*=\s*["']?(?:https?:)?//"""),
}
LINES = 60
INCLUDED = re.compile(r"""{% (?:include|extends) ["'](?P<folder>\w+)/""")
SHARED = {"admin", "charts", "console", "includes"}
FOLDERS = {  # of each app
    "flagadmin": {"api_docs", "styleguide"},
    "groups": {"groups", "login", "people", "roles", "scim", "second_factor", "sessions", "sign_up"},
    "importer": {"importer"},
    "playground": {"playground", "saved_contexts", "stale", "user_runs"},
    "integrations": {"calendar", "integrations", "signals"},
    "releases": {"plans", "releases"},
    "projects": {
        "applications", "connect", "context_fields", "deletion", "environments", "flags", "history", "installation", "members", "projects", "relays", "reverts", "segments",
        "strategies", "tag_types", "tokens",
    },
}  # fmt: skip


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_it_is_short_and_brings_nothing_that_browsers_would_refuse(template):
    text = template.read_text()

    assert [name for name, pattern in FORBIDDEN.items() if pattern.search(text)] == []
    assert len(text.splitlines()) <= LINES


@pytest.mark.parametrize("app", FOLDERS)
def test_an_app_includes_no_template_of_another(app):
    templates = [path for path in TEMPLATES if path.parent.name in FOLDERS[app]]
    included = {match["folder"] for path in templates for match in INCLUDED.finditer(path.read_text())}

    assert included <= FOLDERS[app] | SHARED


def test_every_folder_belongs_to_an_app():
    folders = {path.parent.name for path in TEMPLATES if path.parent.name != "templates"}

    assert folders == set.union(SHARED, *FOLDERS.values())


@pytest.mark.parametrize("path", STATIC, ids=lambda path: path.name)
def test_scripts_and_styles_name_no_other_host(path):
    assert not re.search(r"https?://|@import (?!\"styles/)|eval\(|innerHTML", path.read_text())
