"""The documentation builds as a site, every link leads somewhere, and no page loads anything from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOADED = re.compile(
    r"""<(?:script|img|source|iframe)\b[^>]*\bsrc(?:set)?="([^"]+)"|<link\b[^>]*\bhref="([^"]+)"""
)


def test_the_site_is_built_without_a_warning(tmp_path):
    build = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-n",
        "-c",
        "docs/site",
        ".",
        tmp_path,
    ]
    subprocess.run(build, cwd=ROOT, check=True)
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 20
    loaded = {"".join(found) for page in pages for found in LOADED.findall(page.read_text())}
    assert loaded
    assert [address for address in loaded if "//" in address] == []
