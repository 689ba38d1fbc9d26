"""Puts the text of every page beside it as `.md`, and `llms.txt`, which lists them, at the site's root."""

import re
from pathlib import Path

from sphinx.application import Sphinx

TOCTREE = re.compile(r"```\{toctree\}\n:caption: (.*)\n((?:.*\n)*?)```")
SUMMARY = (
    "Self-hosted feature-flag administration that speaks Unleash's APIs and can say why a user gets a flag."
)


def write_plain_pages(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.name != "html":
        return
    for docname in app.env.found_docs:
        copy = Path(app.outdir, docname + ".md")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(Path(app.env.doc2path(docname)).read_text())
    Path(app.outdir, "llms.txt").write_text(list_pages(app))


def list_pages(app: Sphinx) -> str:
    """https://llmstxt.org: a heading, a summary, and the pages in the site's sections."""
    index = Path(app.env.doc2path(app.config.root_doc)).read_text()
    sections = [
        f"## {caption}\n\n"
        + "".join(f"- [{title}]({name}.md)\n" for name, title in pages_below(app, entries))
        for caption, entries in TOCTREE.findall(index)
    ]
    return "\n".join([f"# {app.config.project}\n\n> {SUMMARY}\n", *sections])


def pages_below(app: Sphinx, entries: str) -> list[tuple[str, str]]:
    """The pages of a toctree and of the toctrees in them, with their titles."""
    pages = []
    for name in re.findall(r"^(?:.*<)?/([^\s>]+)>?$", entries, re.MULTILINE):
        pages.append((name, app.env.titles[name].astext()))
        pages += [(below, app.env.titles[below].astext()) for below in app.env.toctree_includes.get(name, [])]
    return pages


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write_plain_pages)
    return {"parallel_read_safe": True}
