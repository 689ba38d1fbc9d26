"""Files that pages name in code, such as `projects/access.py`, exist."""

import re
import subprocess

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


def test_files_that_pages_name_exist() -> None:
    """Named by their path or the end of it."""
    files = [f"/{path}" for path in known_files()]
    missing = {
        f"{page}: {name}"
        for page in pages()
        if page != "CHANGELOG.md"
        for name in set(NAMED.findall((ROOT / page).read_text())) - OF_THE_READER
        if not PLACEHOLDER.search(name) and not any(file.endswith(f"/{name}") for file in files)
    }
    assert not missing, missing
