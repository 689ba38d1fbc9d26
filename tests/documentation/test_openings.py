"""Every page says at its beginning for whom it is and what one can do afterwards."""

import pytest

from tests.documentation.blocks import pages
from tests.support.paths import ROOT

# Begins as a home page does, or only lists others.
OTHERS = {"docs/site/index.md", "docs/reference/README.md"}
PAGES = [
    path
    for path in pages()
    if path.startswith(("docs/", "deploy/")) and path not in OTHERS and not path.startswith("docs/decisions/")
]


@pytest.mark.parametrize("path", [*PAGES, "docs/decisions/README.md"])
def test_a_page_says_for_whom_it_is_and_what_for(path: str) -> None:
    _, text, *_ = (ROOT / path).read_text().split("\n\n", 2)
    assert "For " in text
    assert "fterwards" in text or "you will have" in text
