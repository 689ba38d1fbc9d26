"""Every page of the console and the admin site that links lead to, and every form on it with odd values."""

import http.client
import random
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlencode, urljoin, urlsplit

from tests.attack.installation import Installation
from tests.attack.result import Result

SLOWEST = 2.0  # seconds
TOKEN = "c" * 32
ODD = (
    "", " ", "0", "-1", "9" * 40, "x" * 20_000, "é😀\u202e", "null", "[]", "{}", "'\"><b>", "\0", "9999-12-31", "%00", "../..",
)  # fmt: skip
# Leaving ends the crawl; what these show is not ours.
SPARED = ("/logout", "/login", "/static/", "/api/", "/admin/logout", "/admin/jsi18n")


@dataclass(slots=True)
class Form:
    action: str
    method: str = "get"
    fields: dict[str, str] = field(default_factory=dict)


class Page(HTMLParser):
    """The links and forms of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.forms: list[Form] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "form":
            self.forms.append(Form(given.get("action", ""), given.get("method", "get").lower()))
        elif tag in ("input", "select", "textarea", "button") and self.forms and given.get("name"):
            self.forms[-1].fields[given["name"]] = given.get("value", "")
        if "hx-get" in given:
            self.links.append(given["hx-get"])
        if "hx-post" in given:
            self.forms.append(Form(given["hx-post"], "post"))


class Crawler:
    def __init__(self, target: Installation, session: str, seed: int) -> None:
        self.target, self.session, self.random = target, session, random.Random(seed)
        self.statuses: Counter[int] = Counter()
        self.faults: list[str] = []
        self.slowest = 0.0
        self.seen: set[str] = set()

    def crawl(self, start: str, until: float) -> None:
        waiting = deque([start])
        while waiting and time.monotonic() < until:
            path = waiting.popleft()
            page = self.fetch("GET", path)
            if page is None:
                continue
            waiting += [link for link in (self.local(path, link) for link in page.links) if self.is_new(link)]
            for form in page.forms:
                self.submit(path, form, until)

    def local(self, page: str, link: str) -> str:
        parts = urlsplit(urljoin(self.target.url + page, link))
        if parts.netloc != urlsplit(self.target.url).netloc:
            return ""
        return parts.path + (f"?{parts.query}" if parts.query else "")

    def is_new(self, path: str) -> bool:
        """One page of each shape: the same address with another query is the same page twice at most."""
        if not path or path.startswith(SPARED):
            return False
        shape = path.partition("?")[0] + ("?" if "?" in path else "")
        new = shape not in self.seen
        self.seen.add(shape)
        return new

    def submit(self, page: str, form: Form, until: float) -> None:
        action = self.local(page, form.action or page)
        if not action or action.startswith(SPARED):
            return
        for name in form.fields or [""]:
            if time.monotonic() > until:
                return
            values = form.fields | {name: self.random.choice(ODD)}
            if form.method == "get":
                self.fetch("GET", f"{action.partition('?')[0]}?{urlencode(values)}")
            else:
                self.fetch("POST", action, urlencode(values | {"csrfmiddlewaretoken": TOKEN}))

    def fetch(self, method: str, path: str, form: str | None = None) -> Page | None:
        connection = http.client.HTTPConnection("127.0.0.1", self.target.port, timeout=60)
        headers = {"Cookie": f"sessionid={self.session}; csrftoken={TOKEN}"}
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        began = time.perf_counter()
        try:
            connection.request(method, path.replace(" ", "%20"), form, headers)
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
        finally:
            connection.close()
        self.judge(method, path, response.status, time.perf_counter() - began)
        return Page(text) if "html" in response.headers.get("Content-Type", "") else None

    def judge(self, method: str, path: str, status: int, seconds: float) -> None:
        self.statuses[status] += 1
        self.slowest = max(self.slowest, seconds)
        if status >= 500 or seconds > SLOWEST:
            self.faults.append(f"{method} {path[:150]}: {status} after {seconds:.1f} s")


def attacks(target: Installation, seconds: float, seed: int) -> Iterator[Result]:
    for name, start in (("console", "/"), ("admin site", "/admin/")):
        crawler = Crawler(target, target.sessions[name], seed)
        crawler.crawl(start, time.monotonic() + seconds / 2)
        asked = sum(crawler.statuses.values())
        figures = f"{asked:,} requests, slowest {crawler.slowest:.2f} s"
        if crawler.faults:
            figures += f"; {len(crawler.faults)} faults, first: {crawler.faults[0]}"
        yield Result(f"the forms of the {name}", not crawler.faults and asked > 20, figures)
