"""Which pages are run from the first to the last block, and which blocks no test runs, by page and first line."""

from tests.documentation.blocks import pages

RUN = ["docs/start.md", *(page for page in pages() if page.startswith("docs/how-to/"))]

_INSTALLS = "would install or start a server of its own"

NOT_RUN: dict[tuple[str, str], str] = {
    ("docs/start.md", "make demo"): _INSTALLS + "; the test has done the same",
}
