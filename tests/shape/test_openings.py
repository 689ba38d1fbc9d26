"""Every page begins with its title and one short paragraph that introduces the page."""

from tests.documentation.blocks import pages
from tests.support.paths import ROOT

# Pages that are generated, or that list decisions, begin with their entries.
LISTS = ("docs/decisions/", "docs/reference/generated/")
LONGEST = 5
NO_PARAGRAPH = ("|", "- ", "#", "```", "1. ")


def has_short_opening(path: str) -> bool:
    title, opening, *_ = (ROOT / path).read_text().split("\n\n", 2)
    return (
        title.startswith("# ")
        and not opening.startswith(NO_PARAGRAPH)
        and opening.count("\n") < LONGEST
        and opening.endswith((".", ":"))
    )


def test_pages_begin_with_a_short_paragraph() -> None:
    guides = [
        path for path in pages() if path.startswith(("docs/", "deploy/")) and not path.startswith(LISTS)
    ]
    assert len(guides) > 30
    faulty = [path for path in guides if not has_short_opening(path)]
    assert not faulty, faulty
