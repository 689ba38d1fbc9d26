"""Every template and script complies with the content security policy and the style rules."""

import re

from django.urls import get_resolver

from flagadmin.core.lists.columns import write_table
from groups.console import ListPage
from tests.support.paths import ROOT

TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
STATIC = sorted(path for path in (ROOT / "flagadmin").rglob("*") if path.suffix in {".css", ".js"})
REFUSED = {
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
    "playground": {"playground", "saved_contexts", "user_runs", "outcomes"},
    "integrations": {"calendar", "integrations", "signals"},
    "releases": {"plans", "releases", "why"},
    "projects": {
        "applications", "connect", "context_fields", "deletion", "environments", "flags", "history", "installation", "members", "projects", "relays", "reverts", "segments",
        "strategies", "tag_types", "tokens",
    },
}  # fmt: skip


def find_faults(template):
    text = template.read_text()
    lines = len(text.splitlines())
    found = [name for name, pattern in REFUSED.items() if pattern.search(text)]
    return [*found, f"{lines} lines, more than {LINES}"] if lines > LINES else found


def test_they_are_short_and_bring_nothing_that_browsers_would_refuse():
    faults = {str(path.relative_to(ROOT)): find_faults(path) for path in TEMPLATES}

    assert len(faults) > 300
    faults = {path: found for path, found in faults.items() if found}
    assert not faults, faults


def list_pages(page=ListPage):
    for each in page.__subclasses__():
        yield each
        yield from list_pages(each)


def test_cells_of_lists_bring_nothing_that_browsers_would_refuse():
    assert get_resolver().url_patterns  # imports all pages
    written = {page.__name__: write_table(page.columns) for page in list_pages() if page.columns}

    assert len(written) > 30
    faults = {
        name: [what for what, found in REFUSED.items() if found.search(text)]
        for name, text in written.items()
    }
    assert not {name: found for name, found in faults.items() if found}


def test_an_app_includes_no_template_of_another():
    foreign = {
        f"{path.relative_to(ROOT)} includes {match['folder']}/"
        for folders in FOLDERS.values()
        for path in TEMPLATES
        if path.parent.name in folders
        for match in INCLUDED.finditer(path.read_text())
        if match["folder"] not in folders | SHARED
    }
    assert not foreign, foreign


def test_every_folder_belongs_to_an_app():
    folders = {path.parent.name for path in TEMPLATES if path.parent.name != "templates"}

    assert folders == set.union(SHARED, *FOLDERS.values())


def test_scripts_and_styles_name_no_other_host():
    unsafe = re.compile(r"https?://|@import (?!\"styles/)|eval\(|innerHTML")
    found = {str(path.relative_to(ROOT)): unsafe.findall(path.read_text()) for path in STATIC}

    assert len(found) > 50
    faults = {path: texts for path, texts in found.items() if texts}
    assert not faults, faults
