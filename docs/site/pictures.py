"""Shows the repository's `<picture>` elements on the site: one image in the light theme, one in the dark."""

import re

from sphinx.application import Sphinx

PICTURE = re.compile(
    r"<picture>\s*<source [^>]*srcset=\"(?P<dark>[^\"]+)\">\s*"
    r"<img alt=\"(?P<alt>[^\"]*)\" src=\"(?P<light>[^\"]+)\">\s*</picture>"
)
IMAGE = "```{{image}} {address}\n:alt: {alt}\n:class: only-{theme} picture\n```\n"


def show_pictures(app: Sphinx, docname: str, source: list[str]) -> None:
    source[0] = PICTURE.sub(as_images, source[0])


def as_images(picture: re.Match[str]) -> str:
    return "\n".join(
        IMAGE.format(address=picture[theme], alt=picture["alt"], theme=theme) for theme in ("light", "dark")
    )


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", show_pictures)
    return {"parallel_read_safe": True}
