"""The documentation builds as a site, every link leads somewhere, and no page loads anything from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from flagadmin.command import GROUPS
from flagadmin.console.api_docs.operations import read_document
from flagadmin.core.audit.events import EventType
from groups.permissions import Permission

ROOT = Path(__file__).resolve().parents[2]
LOADED = re.compile(
    r"""<(?:script|img|source|iframe)\b[^>]*\bsrc(?:set)?="([^"]+)"|<link\b[^>]*\bhref="([^"]+)"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without a warning: a link that leads nowhere is one."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-c", "docs/site", ".", folder]
    subprocess.run(build, cwd=ROOT, check=True)
    return folder


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 80
    loaded = {"".join(found) for page in pages for found in LOADED.findall(page.read_text())}
    assert loaded
    assert [address for address in loaded if "//" in address] == []


def test_pictures_are_shown_in_both_themes(site: Path) -> None:
    page = (site / "docs" / "site" / "index.html").read_text()
    for theme in ("light", "dark"):
        assert re.search(rf'<img [^>]*class="only-{theme} picture"[^>]*_images/playground-{theme}.png', page)
        assert (site / "_images" / f"playground-{theme}.png").exists()


def test_every_page_is_there_as_markdown_and_listed(site: Path) -> None:
    listed = re.findall(r"^- \[.+\]\((.+)\)$", (site / "llms.txt").read_text(), re.MULTILINE)
    made = {
        path.with_suffix(".md").relative_to(site).as_posix()
        for path in site.rglob("*.html")
        if path not in {site / "search.html", site / "genindex.html", site / "index.html"}
    }
    assert sorted([*listed, "docs/site/index.md"]) == sorted(made)
    assert all((site / page).read_text().startswith(("# ", "---")) for page in listed)


def test_every_operation_event_permission_and_command_is_described(site: Path) -> None:
    generated = site / "docs" / "reference" / "generated"
    operations = "".join(page.read_text() for page in (generated / "api").glob("*.md"))
    document = read_document()
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"## {method.upper()} {path}\n" in operations
    for page, names in {"events": EventType, "permissions": Permission}.items():
        assert [name for name in names if f"| `{name}` |" not in (generated / f"{page}.md").read_text()] == []
    commands = (generated / "commands.md").read_text()
    assert [name for names in GROUPS.values() for name in names if f"### {name}\n" not in commands] == []
