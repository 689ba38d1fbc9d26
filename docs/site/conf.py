"""The documentation as a site: `make docs` builds it in build/docs/ and fails on a link that leads nowhere."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from flagadmin import __version__  # noqa: E402

project = "flagadmin"
release = version = __version__
copyright = ""  # noqa: A001 - a setting of Sphinx
extensions = ["myst_parser", "pictures", "plain_pages", "reference"]
root_doc = "docs/site/index"
include_patterns = ["README.md", "CHANGELOG.md", "deploy/README.md", "docs/**/*.md", "docs/*.md"]
# Otherwise all their folders are looked through for pages, twice: those of .venv too.
exclude_patterns = [".*", "build", "dist"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 3  # as the repository's pages have them
html_theme = "furo"
html_title = "flagadmin"
html_copy_source = html_show_sourcelink = html_show_copyright = False
html_theme_options: dict[str, list[str]] = {"top_of_page_buttons": []}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["root"]  # the site's first address leads to the landing page
