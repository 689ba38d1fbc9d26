"""The list of all flags and the search dialog in a large installation: each filter, sorting and search.

``python -m tests.benchmarks.bench_flag_lists [FLAGS [PROJECTS]]`` (default: 20000 50). Each address is asked for in a
warm worker; the median of WARM visits counts. The floor is a page without rows.
"""

import statistics
import sys
import time
from typing import Any

from tests.benchmarks.large_data import make_large_data
from tests.support.live_server import data_directory

WARM = 5
LIST_LIMIT, SEARCH_LIMIT = 200, 50  # ms
FLOOR = "/flags/?q=nothing-is-called-so"
LISTS = [
    "/flags/",
    *(
        f"/flags/?{query}"
        for query in (
            "state=stale",
            "state=overdue",
            "rollout=off",
            "rollout=full",
            "rollout=differs",
            "seen=never",
            "seen=not-30",
            "type=kill-switch",
            "type=release",
            "tag=simple:team-1",
            "project=p07",
            "in-production=on",
            "in-production=all",
            "in-production=some",
            "q=123",
            "sort=project",
            "sort=-in-production",
            "sort=-seen",
            "sort=created",
            "page=300",
            "rollout=differs&sort=-in-production&in-production=some",
        )
    ),
    *(
        f"/api/admin/search/features?{query}"
        for query in ("rollout=IS:full", "rollout=IS:differs", "evaluated=IS:never", "state=IS:overdue")
    ),
]
SEARCHES = [f"/search/?q={text}" for text in ("", "p07-00123", "checkout", "chekout", "123", "stale", "zzzz")]
# A third of the flags are on for everyone, of which every second one also in development.
EVERYONE = """
DELETE FROM projects_strategy s USING projects_flag f WHERE f.id = s.flag_id AND f.id % 3 = 0 AND f.project_id LIKE 'p__';
UPDATE projects_flagenvironment SET enabled = false WHERE flag_id % 7 = 0;
UPDATE projects_flag SET created_at = created_at - interval '200 days', stale = id % 10 = 0;
UPDATE projects_flag SET type = 'kill-switch' WHERE id % 20 = 0;
ANALYZE;
"""


def milliseconds(browser: Any, address: str) -> float:
    headers = {"HX-Request": "true"} if address.startswith("/search/") else {}
    times = []
    for _ in range(WARM):
        begun = time.perf_counter()
        response = browser.get(address, headers=headers)
        times.append((time.perf_counter() - begun) * 1000)
        assert response.status_code == 200, response.text
    return statistics.median(times)


def main(flags: int, projects: int) -> None:
    with data_directory():
        from django.db import connection
        from django.test import Client

        from flagadmin.core.server.static_files import collect_static_files
        from groups.permissions import BuiltIn
        from tests.support.cast import make_user
        from tests.support.scenery import make_scenery

        collect_static_files()
        admin = make_user("admin", root_role=BuiltIn.ADMIN)
        make_scenery()
        make_large_data(flags, projects, 100)
        with connection.cursor() as cursor:
            cursor.execute(EVERYONE)
        browser = Client(SERVER_NAME="localhost")
        browser.force_login(admin)
        print(f"floor {milliseconds(browser, FLOOR):5.0f} ms  {FLOOR}")
        for limit, addresses in ((LIST_LIMIT, LISTS), (SEARCH_LIMIT, SEARCHES)):
            for address in addresses:
                took = milliseconds(browser, address)
                print(f"{'ABOVE' if took > limit else '     '} {took:5.0f} ms  {address}", flush=True)


if __name__ == "__main__":
    main(*[int(text) for text in sys.argv[1:]] or (20_000, 50))
