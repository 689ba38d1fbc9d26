"""A large installation beside the scenery: very many flags in many projects, and applications that report on them."""

import sys
import time

from tests.benchmarks.bench_playground import load

FLAGS, PROJECTS, APPLICATIONS = 100_000, 50, 2_000
USED = 50  # flags of its project that an application reports on

ROWS = (
    """
INSERT INTO projects_flagenvironment (flag_id, environment_id, enabled, variants)
SELECT id, 'development', id %% 3 > 0, '[]' FROM projects_flag WHERE project_id LIKE 'p__'
""",
    """
INSERT INTO projects_flagtag (flag_id, tag_type_id, value)
SELECT id, 'simple', 'team-' || id %% 50 FROM projects_flag WHERE project_id LIKE 'p__'
""",
    """
INSERT INTO audit_auditevent (type, actor_name, project, feature, environment, created_at, request_id)
SELECT 'feature-created', 'admin', project_id, name, NULL, now() - interval '300 days', ''
  FROM projects_flag WHERE project_id LIKE 'p__' ORDER BY id
""",
    """
INSERT INTO audit_auditevent (type, actor_name, project, feature, environment, created_at, request_id, before, after)
SELECT 'feature-environment-enabled', 'admin', project_id, name, 'production', now() - make_interval(mins => age), '',
       '{"enabled": false}', '{"enabled": true}'
  FROM (SELECT id, project_id, name, (id * 7919 %% 430000)::int age FROM projects_flag WHERE project_id LIKE 'p__') f
 ORDER BY age DESC
""",
    """
INSERT INTO projects_application (name, folded_name, strategies, created_at)
SELECT name, name, '{default,flexibleRollout}', now() - interval '100 days'
  FROM (SELECT to_char(n, '"application-"FM00000') AS name FROM generate_series(1, %(applications)s) n) named
""",
    """
INSERT INTO projects_applicationinstance (application_id, environment, instance_id, sdk_version, folded_sdk, sdk_type,
       platform_name, platform_version, spec_version, engine_version, first_seen_at, seen_at)
SELECT a.id, e.name, 'instance-' || a.id || '-' || i, sdk, sdk, 'backend', 'node', '22', '5.2.0', '',
       now() - interval '3 days', now() - make_interval(mins => (a.id %% 600)::int)
  FROM projects_application a, (VALUES ('development'), ('production')) e (name), generate_series(1, 3) i,
       LATERAL (SELECT 'unleash-client-node:6.' || (a.id %% 13) || '.' || i) said (sdk)
 WHERE a.name LIKE 'application-_____'
""",
    """
INSERT INTO projects_flagusage (application_id, flag_id, environment, last_used_at)
SELECT a.id, f.id, e.name, now() - make_interval(mins => (a.id %% 600)::int)
  FROM projects_application a
  JOIN projects_flag f ON f.name LIKE 'p__-_____' AND f.project_id = to_char(a.id %% %(projects)s, '"p"FM00')
       AND right(f.name, 5)::int / %(used)s = a.id / %(projects)s %% greatest(%(each)s / %(used)s, 1),
       (VALUES ('development'), ('production')) e (name)
 WHERE a.name LIKE 'application-_____'
""",
    """
INSERT INTO projects_flaglastseen (flag_id, environment, seen_at)
SELECT u.flag_id, u.environment, max(u.last_used_at) FROM projects_flagusage u
 GROUP BY u.flag_id, u.environment ON CONFLICT DO NOTHING
""",
    """
INSERT INTO projects_usagehour (flag_id, environment, hour, application_id, yes, no, variants)
SELECT u.flag_id, u.environment, date_trunc('hour', now()) - make_interval(hours => h), u.application_id, 3, 1, '{}'
  FROM projects_flagusage u, generate_series(0, 5) h WHERE u.environment = 'production'
    ON CONFLICT DO NOTHING
""",
    """
INSERT INTO projects_usageday (flag_id, environment, day, yes, no, variants)
SELECT DISTINCT u.flag_id, u.environment, current_date - d, 72, 24, '{}'::jsonb
  FROM projects_flagusage u, generate_series(1, 30) d WHERE u.flag_id %% 5 = 0 AND u.environment = 'production'
    ON CONFLICT DO NOTHING
""",
    "SELECT projects_refresh_applications(ARRAY(SELECT id FROM projects_application), now() - interval '7 days')",
    "VACUUM ANALYZE",
)


def make_large_data(flags: int = FLAGS, projects: int = PROJECTS, applications: int = APPLICATIONS) -> None:
    """Projects p00, p01, …, with flags p00-00000, … that are on in production; both environments use them."""
    from django.db import connection

    begun = time.perf_counter()
    for number in range(projects):
        load(f"p{number:02}", flags // projects)
    given = {"applications": applications, "projects": projects, "used": USED, "each": flags // projects}
    with connection.cursor() as cursor:
        for rows in ROWS:
            cursor.execute(rows, given)
    sys.stdout.write(
        f"{flags:,} flags and {applications:,} applications in {time.perf_counter() - begun:.0f} s\n"
    )
    sys.stdout.flush()
