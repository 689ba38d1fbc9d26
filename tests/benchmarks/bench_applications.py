"""The applications list over HTTP beside its floors: an empty authenticated list, and the bare count of the lines.

``python -m tests.benchmarks.bench_applications [APPS [HOURS]]`` (default: 20,000 applications × 2 environments × 3
instances, 48 hours of counts: 1.9 million usage rows)
"""

import json
import sys
import time

from tests.support.live_server import Client, data_directory, median_ms, running

FLAGS = 50
LOAD = """
INSERT INTO projects_flag (name, project_id, type, stale, impression_data, created_at)
SELECT 'flag-' || n, 'default', 'release', false, false, now() FROM generate_series(0, %(flags)s - 1) n;
INSERT INTO projects_application (name, folded_name, strategies, created_at)
SELECT name, name, '{default}', now()
  FROM (SELECT 'application-' || to_char(n * 7919 %% %(apps)s, 'FM00000') AS name
          FROM generate_series(1, %(apps)s) n) named;
INSERT INTO projects_applicationinstance (application_id, environment, instance_id, sdk_version, folded_sdk, sdk_type,
       platform_name, platform_version, spec_version, engine_version, first_seen_at, seen_at)
SELECT a.id, e.name, 'instance-' || a.id || '-' || i, sdk, sdk, 'backend', 'node', '22', '5.2.0', '', now(),
       now() - make_interval(mins => (a.id %% 9000)::int)
  FROM projects_application a, (VALUES ('development'), ('production')) e (name), generate_series(1, 3) i,
       LATERAL (SELECT CASE (a.id + i) %% 4 WHEN 0 THEN 'unleash-client-go:4.' ELSE 'unleash-node-sdk:6.' END
                       || (a.id %% 13) || '.' || i) said (sdk);
INSERT INTO projects_flagusage (application_id, flag_id, environment, last_used_at)
SELECT a.id, f.id, e.name, now() - make_interval(mins => (a.id %% 9000)::int)
  FROM projects_application a JOIN projects_flag f ON f.name = 'flag-' || (a.id %% %(flags)s),
       (VALUES ('development'), ('production')) e (name);
INSERT INTO projects_usagehour (flag_id, environment, hour, application_id, yes, no, variants)
SELECT u.flag_id, u.environment, date_trunc('hour', now()) - make_interval(hours => h), u.application_id, 3, 1, '{}'
  FROM projects_flagusage u, generate_series(0, %(hours)s - 1) h;
"""
REFRESH = "SELECT projects_refresh_applications(ARRAY(SELECT id FROM projects_application), now() - interval '7 days')"

QUESTIONS = {
    "first page": "",
    "page in the middle": "?offset=10000",
    "last page": "?offset=19950",
    "first page, descending": "?sortOrder=desc",
    "by last seen": "?sortBy=lastSeen&sortOrder=desc",
    "by instances, page in the middle": "?sortBy=instances&offset=10000",
    "by environments": "?sortBy=environments",
    "by SDKs": "?sortBy=sdks&sortOrder=desc",
    "search, one match": "?query=application-00777",
    "search, every one": "?query=APPLICATION",
    "search, a quarter by SDK": "?query=unleash-client-go",
    "search, none": "?query=nothing-here",
    "search, three terms": "?query=00777,01888,production",
    "search, sorted, in the middle": "?query=unleash&sortBy=lastSeen&offset=5000",
    "1,000 a page": "?limit=1000",
}


def load(apps: int, hours: int) -> None:
    from django.db import connection

    start = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute(LOAD, {"apps": apps, "flags": FLAGS, "hours": hours})
        before = time.perf_counter()
        cursor.execute(REFRESH)
        refreshed = time.perf_counter() - before
        cursor.execute("VACUUM ANALYZE")
        cursor.execute("SELECT count(*) FROM projects_usagehour")
        [rows] = cursor.fetchone()
    seconds = time.perf_counter() - start
    print(
        f"{apps} applications, {rows} hourly counts in {seconds:.0f} s; all lines made anew in {refreshed:.1f} s"
    )


def count_lines() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM projects_projectapplication WHERE project_id = 'default'")


def main(apps: int, hours: int) -> None:
    with data_directory():
        from tests.support.cast import make_project, make_token

        load(apps, hours)
        make_project("empty")
        secret = make_token("admin")
        bare = median_ms(count_lines)
        with running(workers=1) as port:
            client = Client(port, secret)
            path = "/api/admin/projects/{}/applications{}"
            floor = median_ms(lambda: client.call("GET", path.format("empty", "")), runs=30)
            print(f"floors: an empty list {floor:.1f} ms, the bare count of the lines {bare:.1f} ms")
            for what, query in QUESTIONS.items():
                url = path.format("default", query)
                status, answer = client.call("GET", url)
                assert status == 200, answer
                body = json.loads(answer)
                took = median_ms(lambda url=url: client.call("GET", url))
                print(f"{took:7.1f} ms  {what} ({len(body['applications'])} of {body['total']})")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:3]]
    main(*(given + [20_000, 48][len(given) :]))
