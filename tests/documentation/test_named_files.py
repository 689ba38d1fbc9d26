"""Files that pages name in code, such as `projects/access.py`, exist."""

import re
import subprocess

import pytest

from tests.documentation.blocks import pages
from tests.support.paths import ROOT

NAMED = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|html|css|js|sh|sql|toml|ya?ml|service|timer|socket))`")

# `APP/SUBJECT/pages.py` stands for any.
PLACEHOLDER = re.compile(r"\b(?:APP|SUBJECT|NAME)\b")
OF_THE_READER = {"first.py"}


def known_files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for path in listed.stdout.splitlines() if (ROOT / path).exists()]


FILES = known_files()


@pytest.mark.parametrize("path", [path for path in pages() if path != "CHANGELOG.md"])
def test_files_that_a_page_names_exist(path: str) -> None:
    """Named by their path or the end of it."""
    named = {name for name in NAMED.findall((ROOT / path).read_text()) if not PLACEHOLDER.search(name)}
    missing = {
        name for name in named - OF_THE_READER if not any(f"/{file}".endswith(f"/{name}") for file in FILES)
    }
    assert missing == set()
