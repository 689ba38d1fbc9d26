"""Pictures from the demo's data, light and dark: ``python -m tests.browser.screenshots`` (``make screenshots``).

Those of the README go to ``tests/browser/pictures`` (``… screenshots readme`` takes only these); every page of
``tests/browser/pages.py``, wide and narrow, to ``build/pages``, to be looked at.
"""

import json
import os
import re
import sys
from collections.abc import Callable
from typing import Any

from playwright.sync_api import BrowserContext, Page, sync_playwright

from tests.browser.chromium import CHROMIUM, QUIET
from tests.browser.pages import PAGES, filled, meant_status
from tests.support.live_server import data_directory, running
from tests.support.paths import ROOT

README, LOOK = ROOT / "tests" / "browser" / "pictures", ROOT / "build" / "pages"
THEMES: Any = ("light", "dark")
ONLY_README = sys.argv[1:] == ["readme"]


def picture_playground(page: Page) -> None:
    """The playground, with the flag that is off by its bucket taken apart."""
    page.locator("tr", has=page.get_by_role("link", name="dark-theme", exact=True)).locator("summary").click()
    page.evaluate("scrollTo(0, 0)")


def picture_strategy(page: Page) -> None:
    """A rollout that is being raised, with who changes."""
    page.goto("/projects/storefront/features/search-v2/")
    page.get_by_role("link", name="Roll out strategy 1 in production").click()
    page.get_by_label("Rollout percentage").fill("80")
    page.get_by_text("generated users change").wait_for()


def picture_import(page: Page) -> None:
    """The preview of a file from development on its way into production."""
    page.goto("/import/?project=checkout&environment=production")
    page.get_by_label("Or paste its content").fill(json.dumps(changed_export()))
    page.get_by_role("button", name="Check changes").click()
    page.wait_for_selector("table")


def changed_export() -> dict[str, Any]:
    """The checkout as it is, but for one rollout, one constraint, a flag that is new and one that is archived."""
    from groups.access import Caller
    from importer.api import Selection, export_selection

    data = export_selection(Selection(environment="production", project="checkout"), caller=Caller.system())
    for strategy in data["featureStrategies"]:
        if strategy["featureName"] == "one-click-pay":
            strategy["parameters"]["rollout"] = "40"
        for constraint in strategy["constraints"]:
            if strategy["featureName"] == "apple-pay" and constraint["contextName"] == "country":
                constraint["values"] = [*constraint["values"], "NO"]
    for name in ("brand-new-flag", "old-cart"):
        data["features"].append({"name": name, "type": "release", "description": "Tried in development."})
        parameters = {"rollout": "10", "stickiness": "default", "groupId": name}
        data["featureStrategies"].append(
            {"name": "flexibleRollout", "featureName": name, "parameters": parameters, "constraints": []}
        )
        data["featureEnvironments"].append({"featureName": name, "name": name, "enabled": True})
    for entry in data["featureEnvironments"]:
        entry["environment"] = "development"
    return data


def picture_of(address: str) -> Callable[[Page], None]:
    return lambda page: _visit(page, address)


def _visit(page: Page, address: str) -> None:
    page.goto(address)


PICTURES: dict[str, Callable[[Page], None]] = {
    "playground": picture_playground,
    "delete-project": picture_of("/projects/legacy-portal/delete/"),
    "start": picture_of("/"),
    "project": picture_of("/projects/checkout/"),
    "flag": picture_of("/projects/checkout/features/checkout-redesign/"),
    "strategy": picture_strategy,
    "activity": picture_of("/activity/"),
    "compare": picture_of("/playground/compare/"),
    "import-preview": picture_import,  # last: the start page tells of it
}


def main() -> None:
    for folder in (README, LOOK):
        folder.mkdir(parents=True, exist_ok=True)
    # The browser runs an event loop in this thread; the links are not made from within it.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with data_directory():
        from flagadmin.demo.load import load_demo

        admin = load_demo()
        with running() as port, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
            for theme in THEMES:
                for width in (1440,) if ONLY_README else (1440, 360):
                    context = browser.new_context(
                        base_url=f"http://127.0.0.1:{port}",
                        color_scheme=theme,
                        viewport={"width": width, "height": 900},
                        reduced_motion="reduce",
                    )
                    take_all(context, admin, f"{theme}-{width}")
                    context.close()
            browser.close()


def take_all(context: BrowserContext, admin: Any, ending: str) -> None:
    from groups.login.links import create_login_link

    page = context.new_page()
    page.goto(create_login_link(admin, VISIT))
    if page.get_by_role("button", name="Log in").count():
        page.get_by_role("button", name="Log in").click()
    page.wait_for_url(re.compile("/playground/"))
    if ending.endswith("1440"):
        for name, prepare in PICTURES.items():
            prepare(page)
            page.wait_for_load_state("networkidle")
            page.screenshot(path=README / f"{name}-{ending.removesuffix('-1440')}.png")
    for number, address in enumerate(() if ONLY_README else PAGES):
        try:
            response = page.goto(filled(address))
        except IndexError:  # the demo has no such row
            response = None
        if response is None or response.status != meant_status(address):
            why = f"status {response.status}" if response else "not in the demo"
            sys.stderr.write(f"No picture of {address}: {why}\n")
            continue
        page.screenshot(path=LOOK / f"{number:02}-{_file_name(address)}-{ending}.png", full_page=True)


VISIT = (
    "/playground/?environment=production&context.userId=42&context.plan=pro&context.appVersion=4.5.1"
    "&context.country=NO&context.region=eu"
)


def _file_name(address: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", address.lower()).strip("-")[:60] or "start"


if __name__ == "__main__":
    main()
