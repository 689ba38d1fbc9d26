"""Reads the strategy editor's form from a page, as a browser without JavaScript would submit it."""

from html.parser import HTMLParser


class Form(HTMLParser):
    """The data that a browser without JavaScript would submit for the form #editor."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.sent: dict[str, list[str]] = {}
        self.inside = False
        self.select: str | None = None
        self.area: str | None = None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        name, value = values.get("name"), values.get("value") or ""
        if tag == "form":
            self.inside = values.get("id") == "editor"
        elif tag != "option" and not self.inside and values.get("form") != "editor":
            self.select = None if tag == "select" else self.select
        elif (
            tag == "input"
            and name
            and (values.get("type") not in ("checkbox", "radio") or "checked" in values)
        ):
            hidden = values.get("type") == "hidden"
            self.add(
                name, value.replace("\n", "\r\n") if hidden else value.replace("\n", "").replace("\r", "")
            )
        elif tag == "select":
            self.select = name
        elif tag == "option" and self.select and "selected" in values:
            self.add(self.select, value)
        elif tag == "textarea":
            self.area, self.text = name, ""

    def handle_endtag(self, tag):
        if tag == "textarea" and self.area:
            lines = self.text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\n")
            self.add(self.area, lines.replace("\n", "\r\n"))
            self.area = None
        elif tag == "form":
            self.inside = False

    def handle_data(self, data):
        if self.area:
            self.text += data

    def add(self, name, value):
        self.sent.setdefault(name, []).append(value)
