"""A page as it is looked at: wide and light, narrow and dark."""

from typing import Any

from playwright.sync_api import Page

from tests.browser.accessibility import check_always, find_violations

WIDTHS = (1440, 1024, 820, 360)
_WIDE = """async (width) => {
    while (innerWidth !== width) await new Promise(requestAnimationFrame);
    return document.documentElement.scrollWidth;
}"""


def tell(faults: dict[str, dict[str, Any]]) -> None:
    """Fails if there are any, by kind for each address, and names all: a comparison would be cut."""
    told = [
        f"{address}: {kind}: {fault}" for address, found in faults.items() for kind, fault in found.items()
    ]
    assert not told, "\n".join(told)


class Window:
    """Looks at pages wide and light, at widths in between, and narrow and dark.

    Colors depend on the theme and structure on the width: two looks with both different find what all four would.
    The next page is first looked at as this one was last, because each change draws the page again.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.widths = WIDTHS
        check_always(page)
        self._browser = page.context.new_cdp_session(page)  # quicker than set_viewport_size()
        self.width_at(self.widths[0])

    def check(self, *addresses: str) -> None:
        """Fails if one of these pages does not fit or is not accessible in one of the looks."""
        faults = {}
        for address in addresses:
            self.page.goto(address)
            faults[address] = self.look()
        tell(faults)

    def look(self) -> dict[str, Any]:
        """What is wrong with the page, by kind."""
        faults: dict[str, Any] = {"violations": find_violations(self.page)}
        faults["width"] = self.too_wide()
        self.page.emulate_media(color_scheme="light" if self.widths[0] == max(WIDTHS) else "dark")
        faults["violations in the other look"] = find_violations(self.page, again=True)
        return {kind: found for kind, found in faults.items() if found}

    def too_wide(self) -> dict[int, int]:
        """The widths that the page does not fit, with its own."""
        found = {width: self.width_at(width) for width in self.widths}
        self.widths = self.widths[::-1]
        return {width: wide for width, wide in found.items() if wide > width}

    def narrow(self) -> int:
        """Makes it narrow and dark. Returns how wide its page is then."""
        self.widths = WIDTHS[::-1]
        self.page.emulate_media(color_scheme="dark")
        return self.width_at(min(WIDTHS))

    def width_at(self, width: int) -> int:
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self._browser.send("Emulation.setDeviceMetricsOverride", metrics)
        found: int = self.page.evaluate(_WIDE, width)
        return found
