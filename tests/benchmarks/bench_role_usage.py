"""Role usage over 1,000 projects and 100,000 grants, beside reading the bare counts and an empty request.

``python -m tests.benchmarks.bench_role_usage [PROJECTS GRANTS]``
"""

import sys

from tests.support.live_server import Client, data_directory, median_ms, running

MEMBER = 5
BARE = "SELECT project_id, count(*) FROM groups_grant WHERE role_id = %s GROUP BY project_id"


def load(projects: int, grants: int) -> None:
    from django.db import connection

    from groups.models import Grant, Group, User
    from projects.models import Project

    Project.objects.bulk_create([Project(id=f"p{n:04}", name=f"p{n:04}") for n in range(projects)])
    each = max(1, grants // projects)
    users = User.objects.bulk_create(
        [User(username=f"u{n}", is_service=n % 20 == 0) for n in range(each - each // 10)]
    )
    groups = Group.objects.bulk_create([Group(name=f"g{n}") for n in range(each // 10)])
    rows = [
        Grant(role_id=MEMBER, project_id=f"p{n:04}", user=user) for n in range(projects) for user in users
    ] + [
        Grant(role_id=MEMBER, project_id=f"p{n:04}", group=group) for n in range(projects) for group in groups
    ]
    Grant.objects.bulk_create(rows, batch_size=5000)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE groups_grant")
        cursor.execute("ANALYZE groups_user")
    print(f"{projects} projects, {len(rows)} grants of one role")


def bare() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(BARE, [MEMBER])
        cursor.fetchall()


def main(projects: int, grants: int) -> None:
    with data_directory():
        from projects.members.queries import read_role_usage
        from tests.support.cast import make_token

        load(projects, grants)
        secret = make_token("admin")
        action = median_ms(lambda: read_role_usage(MEMBER))
        floor = median_ms(bare)
        with running(workers=1) as port:
            client = Client(port, secret)
            path = "/api/admin/projects/roles/{}/access"
            status, _ = client.call("GET", path.format(MEMBER))
            assert status == 200
            whole = median_ms(lambda: client.call("GET", path.format(MEMBER)))
            empty = median_ms(lambda: client.call("GET", path.format(9999)))
        print(
            f"whole request {whole:.1f} ms, the query {action:.1f} ms; "
            f"floors: bare count of the same rows {floor:.1f} ms, empty request {empty:.1f} ms"
        )


if __name__ == "__main__":
    main(*([int(argument) for argument in sys.argv[1:3]] or [1000, 100_000]))
