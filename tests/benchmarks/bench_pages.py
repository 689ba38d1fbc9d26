"""First paint of pages of the demo in Chromium, each visit with an empty cache, beside the smallest page there is.

``python -m tests.benchmarks.bench_pages`` needs Chromium.
"""

import os
import re
import statistics
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from tests.browser.chromium import CHROMIUM, QUIET
from tests.support.live_server import data_directory, running

ROUNDS = 9
FLOOR = "/healthz"
PAGES = (
    "/",
    "/playground/?environment=production&context.userId=42",
    "/import/",
    "/projects/checkout/",
    "/projects/checkout/applications/",
)
PAINTED = """() => new Promise((resolve) => new PerformanceObserver((found, observer) => {
    for (const entry of found.getEntriesByName("first-contentful-paint")) {
        observer.disconnect();
        resolve(entry.startTime);
    }
}).observe({ type: "paint", buffered: true }))"""
SENT = """() => performance.getEntries().reduce((sum, entry) => sum + (entry.transferSize ?? 0), 0)"""


def visit(browser: Browser, origin: str, address: str, session: Any) -> tuple[float, float, int]:
    """First paint in ms, bytes and requests of a first visit."""
    context = browser.new_context(base_url=origin, storage_state=session)
    requests: list[str] = []
    context.on("request", lambda request: requests.append(request.url))
    page = context.new_page()
    page.goto(address, wait_until="networkidle")
    painted, sent = page.evaluate(PAINTED), page.evaluate(SENT)
    context.close()
    return painted, sent, len(requests)


def main() -> None:
    if CHROMIUM is None:
        print("Chromium is not installed, nothing was measured. `make browser` installs it.")
        return
    # The browser runs an event loop in this thread; the links are not made from within it.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with data_directory():
        from flagadmin.demo.load import load_demo
        from groups.login.links import create_login_link

        link = create_login_link(load_demo(), "/projects/")
        with running(workers=1) as port, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
            origin = f"http://127.0.0.1:{port}"
            context = browser.new_context(base_url=origin)
            page = context.new_page()
            page.goto(link)
            if page.get_by_role("button", name="Log in").count():
                page.get_by_role("button", name="Log in").click()
            page.wait_for_url(re.compile("/projects/$"))
            session = context.storage_state()
            for address in (FLOOR, *PAGES):
                visits = [visit(browser, origin, address, session) for _ in range(ROUNDS)]
                painted = statistics.median(found[0] for found in visits)
                print(
                    f"{address:<60} first paint {painted:4.0f} ms, "
                    f"{visits[-1][1] / 1000:.0f} kB in {visits[-1][2]} requests"
                )
            browser.close()


if __name__ == "__main__":
    main()
