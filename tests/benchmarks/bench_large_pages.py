"""Every page of the console in a large installation: in a worker that has shown nothing yet, and when it is warm.

``python -m tests.benchmarks.bench_large_pages [FLAGS [PROJECTS [APPLICATIONS]]]`` (default: 100000 50 2000). Each page is
asked for in a process of its own, forked from one that has loaded the application, as workers are when they start:
once, and then three times, of which the median counts. Pages above LIMIT stand first.
"""

import multiprocessing
import sys
import time
from typing import Any, NamedTuple

from tests.benchmarks.large_data import APPLICATIONS, FLAGS, PROJECTS, make_large_data
from tests.browser.pages import PAGES, filled, meant_status
from tests.support.live_server import data_directory

LIMIT = 1.0  # seconds
WARM = 3
USER = "context.userId=42&context.country=NO&context.plan=professional"
PROJECT, FLAG = "/projects/p00/", "/projects/p00/features/p00-00500"
# Pages about what is large, beside those about the scenery's few flags.
LARGE_PAGES = [
    f"/playground/?environment=production&project=p00&{USER}",
    f"/playground/?environment=production&environment=development&project=p00&{USER}",
    f"/playground/?environment=production&project=p00&state=on&q=123&{USER}",
    f"/playground/flag/p00-00500/?environment=production&{USER}",
    "/playground/compare/?project=p00&from=production&to=development",
    "/playground/who-changes/?from=production&to=development&users=200&project=p00",
    "/projects/?q=p0&sort=-flags",
    *(
        f"/flags/?{query}"
        for query in (
            "state=overdue",
            "rollout=differs&sort=-in-production&in-production=some",
            "rollout=full",
            "seen=not-30",
            "tag=simple:team-1",
            "q=123",
            "sort=-seen",
            "page=300",
        )
    ),
    PROJECT,
    *(
        f"{PROJECT}?{query}"
        for query in (
            "in-production=some",
            "sort=-in-production",
            "sort=seen",
            "seen=never",
            "tag=simple:team-1",
            "q=123",
            "page=30",
            "show=archived",
        )
    ),
    f"{PROJECT}activity/",
    f"{PROJECT}applications/",
    f"{PROJECT}settings/",
    f"{PROJECT}access/",
    f"{PROJECT}delete/",
    f"{PROJECT}features/new",
    f"{PROJECT}features/archive?name=p00-00500",
    f"{PROJECT}features/switch?environment=production&enabled=off&name=p00-00500&name=p00-00501",
    f"{PROJECT}features/tags?name=p00-00500",
    f"{FLAG}/",
    f"{FLAG}/?environment=production",
    f"{FLAG}/edit",
    f"{FLAG}/clone",
    f"{FLAG}/move",
    f"{FLAG}/switch?environment=production&enabled=off",
    f"{FLAG}/strategies/new?environmentId=production",
    f"{FLAG}/variants?environmentId=production",
    "/activity/?project=p00",
    "/activity/?page=50",
    "/applications/?page=20",
    "/applications/application-00042/",
    "/search/?q=p00-00500",
    "/search/?q=123",
    "/search/?q=123&kind=flags",
    "/import/?project=p00",
    "/admin/projects/flag/?q=p00-00500",
    "/admin/projects/strategy/",
    "/admin/projects/project/p00/change/",
    "/admin/projects/project/p00/delete/",
]


class Visit(NamedTuple):
    address: str
    status: int
    size: int  # bytes
    cold: float  # seconds
    warm: float
    cpu: float  # seconds of the slower of both, without those of PostgreSQL
    statements: int
    in_database: float  # seconds of the last visit

    def __str__(self) -> str:
        return (
            f"{self.status} {self.size:9,} bytes {self.cold * 1e3:6.0f} ms cold {self.warm * 1e3:6.0f} ms warm"
            f" ({self.cpu * 1e3:6.0f} ms CPU) {self.statements:3} statements {self.in_database * 1e3:5.0f} ms  {self.address}"
        )


def fill(flags: int, projects: int, applications: int) -> tuple[str, list[str]]:
    """The session of an administrator, and the addresses of the pages."""
    from django.test import Client

    from flagadmin.core.server.static_files import collect_static_files
    from groups.permissions import BuiltIn
    from tests.support.cast import make_user
    from tests.support.scenery import make_scenery

    collect_static_files()
    admin = make_user("admin", root_role=BuiltIn.ADMIN)
    make_scenery()
    make_large_data(flags, projects, applications)
    browser = Client()
    browser.force_login(admin)
    return browser.cookies["sessionid"].value, [*map(filled, PAGES), *LARGE_PAGES]


def visit(session: str, address: str) -> Visit:
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    browser = Client(raise_request_exception=False, SERVER_NAME="localhost")
    browser.cookies["sessionid"] = session

    def seconds() -> tuple[float, float]:
        begun, cpu = time.perf_counter(), time.process_time()
        browser.get(address)
        return time.perf_counter() - begun, time.process_time() - cpu

    cold = seconds()
    warm = sorted(seconds() for _ in range(WARM))[WARM // 2]
    with CaptureQueriesContext(connection) as captured:
        page = browser.get(address)
    in_database = sum(float(query["time"]) for query in captured.captured_queries)
    return Visit(
        address,
        page.status_code,
        len(page.content),
        cold[0],
        warm[0],
        max(cold, warm)[1],
        len(captured),
        in_database,
    )


def in_new_process(work: Any, *given: Any) -> Any:
    with multiprocessing.get_context("fork").Pool(1) as process:
        return process.apply(work, given)


def show(visits: list[Visit]) -> None:
    slow = [each for each in visits if max(each.cold, each.warm) > LIMIT]
    faults = [each for each in visits if each.status != meant_status(each.address)]
    print(
        f"{len(visits)} pages, {len(slow)} above {LIMIT:.0f} s, {len(faults)} with another status than meant"
    )
    for title, chosen in (
        ("above the limit", slow),
        ("another status", faults),
        ("all, slowest first", visits),
    ):
        print(title + ":")
        for each in sorted(chosen, key=lambda each: -max(each.cold, each.warm)):
            print("   ", each)


def main(flags: int, projects: int, applications: int) -> None:
    with data_directory():
        from django.db import connection

        # In a process of its own, as connections must not be there when this one forks.
        session, addresses = in_new_process(fill, flags, projects, applications)
        import flagadmin.rsgi  # noqa: F401 - what a worker loads, with a query

        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]
        show([in_new_process(visit, session, address) for address in addresses])


if __name__ == "__main__":
    main(*[*map(int, sys.argv[1:]), *(FLAGS, PROJECTS, APPLICATIONS)[len(sys.argv) - 1 :]])
