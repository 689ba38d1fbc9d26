"""Counts the clicks of a journey: presses of the mouse or of Enter on a control. Typing is free."""

from playwright.sync_api import Locator, Page


class Clicks:
    """``clicks.on(page.get_by_role("link", name="Access"))``, then ``clicks.count``."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.count = 0

    def on(self, control: Locator) -> None:
        self.count += 1
        control.click()

    def enter(self, control: Locator) -> None:
        """Enter in a field or on a control."""
        self.count += 1
        control.press("Enter")

    def choose(self, select: Locator, option: str | None = None, *, label: str | None = None) -> None:
        """An option of a select counts as one click, as a link in a menu would."""
        self.count += 1
        select.select_option(option, label=label)


def add_condition(page: Page, field: str) -> None:
    """Adds a condition on a context field to the rule of a strategy or segment. The focus moves to its value."""
    page.get_by_label("Add condition").fill(field)
    page.keyboard.press("Tab")
