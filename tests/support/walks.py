"""Walks through the console as a browser without JavaScript: follows links and sends forms that a page really has.

Links, buttons and fields are found by their names, as people and screen readers know them. A walk fails if there is
none, if it is disabled, or if a page answers 500. It draws nothing, so layout, focus and scripts need tests/browser.
"""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

from bs4 import BeautifulSoup, Tag
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import QueryDict
from django.test import Client
from django.utils.datastructures import MultiValueDict

from groups.models import User
from tests.support.cast import log_in
from tests.support.second_factor import just_logged_in

PRESSED = "a[href], button, input[type=submit], summary"
FIELDS = "input, select, textarea"


class Walk:
    """``walk.press("Delete group")``, then ``walk.text``. ``presses`` counts what was pressed, ticked and chosen."""

    def __init__(self, user: User | None, address: str) -> None:
        self.client = Client()
        if user is not None:
            log_in(self.client, user)
            session = self.client.session
            just_logged_in(session, user)
            session.save()
        self.presses = 0
        self.address = ""
        self.open(address)

    # Pages ----------------------------------------------------------------------------------------------------

    def open(self, address: str) -> None:
        target = urljoin(self.address, address)
        self._show(self.client.get(target, follow=True, headers=self._headers()))

    def _show(self, answer: Any) -> None:
        assert answer.status_code < 500, answer.status_code
        self.answer, self.status = answer, answer.status_code
        request = answer.request
        query = f"?{request['QUERY_STRING']}" if request["QUERY_STRING"] else ""
        self.address = request["PATH_INFO"] + query
        self.page = BeautifulSoup(b"".join(answer) if answer.streaming else answer.content, "html.parser")

    def _headers(self) -> dict[str, str]:
        return {"referer": f"http://testserver{self.address}"} if self.address else {}

    @property
    def text(self) -> str:
        """All that the page says, without its navigation, with whitespace collapsed."""
        return read_text(self.page.select_one("body") or self.page)

    @property
    def heading(self) -> str:
        found = self.page.select_one("h1")
        assert found, self.text
        return read_text(found)

    @property
    def status_message(self) -> str:
        return " ".join(read_text(each) for each in self.page.select("#messages"))

    def part(self, name: str) -> Tag:
        """The region, navigation, table row, list item or form of this name."""
        for each in self.page.select("section, nav, aside, form, fieldset, article, dialog, [role], tr, li"):
            if name in self._names_of_part(each):
                return each
        raise AssertionError(f"{name!r} is no part of {self.address}: {self.text}")

    def _names_of_part(self, part: Tag) -> list[str]:
        if part.name == "tr":
            return [read_text(each) for each in part.select("a, th")]
        if labelled := part.get("aria-labelledby"):
            return [" ".join(read_text(self.page.find(id=each)) for each in str(labelled).split())]
        legend = part.find("legend", recursive=False)
        return [str(part.get("aria-label") or (read_text(legend) if legend else ""))]

    @property
    def dialog(self) -> str:
        """What the page asks."""
        [asked] = self.page.select("dialog[open]")
        return read_text(asked)

    def rows(self) -> list[str]:
        """The first names in the rows of the page's table."""
        return [read_text(each) for each in self.page.select("main tbody th a")]

    # Links and buttons ----------------------------------------------------------------------------------------

    def names(self, within: str = "") -> list[str]:
        """The names of all links and buttons."""
        return [self._name(each) for each in self._shown(PRESSED, within)]

    def press(self, name: str, within: str = "") -> None:
        """Follows the link of this name, or sends the form of the button; opens what a summary opens."""
        self.presses += 1
        control = self.control(name, within)
        if control.name == "a":
            self.open(str(control["href"]))
        elif control.name != "summary":
            self.send(control)

    def control(self, name: str, within: str = "") -> Tag:
        """The button or link of this name, or the first whose name contains it."""
        found = [(self._name(each), each) for each in self._shown(PRESSED, within)]
        usable = [(called, each) for called, each in found if each.get("type") not in ("button", "reset")]
        exact = sorted(
            (each for called, each in usable if called == name), key=lambda each: each.name != "button"
        )
        loose = [each for called, each in usable if name.lower() in called.lower()]
        assert exact or loose, f"no {name!r} among {[called for called, _ in usable]}"
        return (exact or loose)[0]

    def _name(self, control: Tag) -> str:
        return str(control.get("aria-label") or read_text(control) or control.get("value") or "")

    def _shown(self, selector: str, within: str) -> list[Tag]:
        """What the page has of these, but for what only a script shows."""
        scope = self.part(within) if within else self.page
        return [
            each for each in scope.select(selector) if not (_is_hidden(each) or each.find_parent(_is_hidden))
        ]

    # Forms ----------------------------------------------------------------------------------------------------

    def field(self, label: str, within: str = "") -> Tag:
        """The field of this label, or the first whose label contains it."""
        found = [(self.label_of(each), each) for each in self._shown(FIELDS, within)]
        exact = [each for called, each in found if called == label]
        loose = [each for called, each in found if label.lower() in called.lower()]
        assert exact or loose, f"no {label!r} among {[called for called, _ in found if called]}"
        return (exact or loose)[0]

    def label_of(self, field: Tag) -> str:
        """The name of a field."""
        if named := field.get("aria-label"):
            return str(named)
        key = field.get("id")
        label = (self.page.find("label", attrs={"for": key}) if key else None) or field.find_parent("label")
        return read_text(label, without=FIELDS) if label else ""

    def fill(self, label: str, value: str, within: str = "") -> None:
        field = self.field(label, within)
        assert not field.has_attr("disabled"), label
        if field.name == "textarea":
            field.string = value
        else:
            field["value"] = value

    def value(self, label: str, within: str = "") -> str:
        field = self.field(label, within)
        if field.name == "select":
            return next((value for _, value in _selected(field)), "")
        return field.get_text() if field.name == "textarea" else str(field.get("value", ""))

    def tick(self, label: str, within: str = "") -> None:
        """Ticks a box, or one of several radio buttons."""
        self.presses += 1
        field = self.field(label, within)
        if field["type"] == "radio":
            for each in self.page.select(f'input[type=radio][name="{field["name"]}"]'):
                del each["checked"]
        field["checked"] = ""

    def untick(self, label: str, within: str = "") -> None:
        self.presses += 1
        del self.field(label, within)["checked"]

    def is_ticked(self, label: str, within: str = "") -> bool:
        return self.field(label, within).has_attr("checked")

    def choose(self, label: str, option: str, within: str = "") -> None:
        """Chooses the option of this value or text."""
        self.presses += 1
        options = self.field(label, within).select("option")
        chosen = next((each for each in options if option in (each.get("value"), read_text(each))), None)
        assert chosen, f"{label}: no {option!r} among {[read_text(each) for each in options]}"
        for each in options:
            del each["selected"]
        chosen["selected"] = ""

    def attach(self, label: str, name: str, content: bytes) -> None:
        """Chooses a file of this name."""
        self.field(label)["data-attached"] = ""
        self._attached = SimpleUploadedFile(name, content)

    def send(self, button: Tag) -> None:
        """Sends the form of this button, as Enter does with the first one."""
        assert not button.has_attr("disabled"), f"{self._name(button)} is disabled"
        form = self.form_of(button)
        assert form is not None, f"{self._name(button)} is in no form"
        data = MultiValueDict[str, Any]()
        for name, value in [*self._values(form), (button.get("name"), str(button.get("value", "")))]:
            if name:
                data.appendlist(name, value)
        address = str(button.get("formaction") or form.get("action") or self.address)
        target = urljoin(self.address, address)
        if str(button.get("formmethod") or form.get("method") or "get").lower() == "get":
            query = QueryDict(mutable=True)
            query.update(data)
            self.open(f"{urlsplit(target)._replace(query=query.urlencode()).geturl()}")
        else:
            sent = dict(data.lists())
            self._show(self.client.post(target, sent, follow=True, headers=self._headers()))

    def form_of(self, control: Tag) -> Tag | None:
        if key := control.get("form"):
            return self.page.find("form", id=key)
        return control.find_parent("form")

    def _values(self, form: Tag) -> Iterator[tuple[str, Any]]:
        """What a browser sends of a form, in the order of the page."""
        for field in self.page.select(FIELDS):
            name, kind = str(field.get("name", "")), field.get("type")
            if not name or field.has_attr("disabled") or self.form_of(field) is not form:
                continue
            if field.name == "select":
                yield from _selected(field)
            elif field.name == "textarea":
                yield name, re.sub(r"\r\n?|\n", "\r\n", field.get_text().removeprefix("\n"))
            elif kind == "file":
                if field.has_attr("data-attached"):
                    yield name, self._attached
            elif kind not in ("submit", "button", "reset", "image") and (
                kind not in ("checkbox", "radio") or field.has_attr("checked")
            ):
                yield name, str(field.get("value", "on" if kind in ("checkbox", "radio") else ""))


def _selected(select: Tag) -> list[tuple[str, str]]:
    options = select.select("option:not([disabled])")
    chosen = [each for each in options if each.has_attr("selected")]
    if not select.has_attr("multiple"):
        chosen = chosen[-1:] or options[:1]
    return [(str(select["name"]), str(each.get("value", read_text(each)))) for each in chosen]


def _is_hidden(tag: Tag) -> bool:
    return tag.has_attr("hidden") or (tag.name == "dialog" and not tag.has_attr("open"))


def read_text(tag: Any, without: str = "svg, script, template, [hidden], dialog:not([open])") -> str:
    """The text of an element, with whitespace collapsed."""
    left_out = set(map(id, tag.select(without))) if without else set()
    strings = (text for text in tag.strings if not any(id(parent) in left_out for parent in text.parents))
    return " ".join("".join(strings).split())
