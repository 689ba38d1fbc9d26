"""Server time of the console's pages with very many flags in one project, and very many SDK instances.

``python -m tests.benchmarks.bench_many_flags [FLAGS [INSTANCES]]`` (default: 20000 100000), in this process: the best
of some warm views, as time on the clock and CPU time of this process (without that of PostgreSQL).
"""

import sys
import time
from typing import Any

from tests.benchmarks.bench_playground import load
from tests.support.live_server import data_directory

ROUNDS = 3
LIST = "/projects/many/"
PAGES = (
    "/",
    "/projects/",
    LIST,
    f"{LIST}?in-production=on",
    f"{LIST}?in-production=off",
    f"{LIST}?in-production=all",
    f"{LIST}?in-production=some",
    f"{LIST}?sort=in-production",
    f"{LIST}?sort=-in-production",
    f"{LIST}?sort=seen",
    f"{LIST}?seen=never",
    f"{LIST}?seen=not-7",
    f"{LIST}?tag=simple:team-1",
    f"{LIST}?q=123",
    f"{LIST}?page=300",
    f"{LIST}activity/",
    f"{LIST}applications/",
    f"{LIST}features/many-00500/",
    "/applications/",
    "/applications/large/",
    "/activity/",
    "/search/?q=123",
    "/playground/?environment=production&project=many&context.userId=42",
    "/playground/?environment=production&environment=development&project=many&context.userId=42",
    "/playground/compare/",
)


def fill(flags: int, instances: int) -> None:
    from django.db import connection
    from django.utils import timezone

    from flagadmin.core.audit.events import EventType
    from flagadmin.core.audit.models import AuditEvent
    from projects.models import Flag, FlagEnvironment, FlagLastSeen, FlagTag

    load("many", flags)
    now, made = timezone.now(), list(Flag.objects.filter(project="many"))
    FlagEnvironment.objects.bulk_create(
        FlagEnvironment(flag=flag, environment_id="development", enabled=bool(number % 3))
        for number, flag in enumerate(made)
    )
    FlagLastSeen.objects.bulk_create(
        FlagLastSeen(flag=flag, environment=environment, seen_at=now)
        for flag in made[::2]
        for environment in ("production", "development")
    )
    FlagTag.objects.bulk_create(
        FlagTag(flag=flag, tag_type_id="simple", value=f"team-{number % 50}")
        for number, flag in enumerate(made)
    )
    AuditEvent.objects.bulk_create(
        AuditEvent(type=EventType.FEATURE_CREATED, actor_name="admin", project="many", feature=flag.name)
        for flag in made
    )
    add_instances(instances)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def add_instances(number: int) -> None:
    """In one application, of 5,000 versions."""
    from django.utils import timezone

    from projects.applications.store_report import refresh_applications
    from projects.models import Application, ApplicationInstance, Flag, FlagUsage

    now = timezone.now()
    large = Application.objects.create(name="large", folded_name="large", created_at=now)
    ApplicationInstance.objects.bulk_create(
        ApplicationInstance(
            application=large,
            environment="production",
            instance_id=f"instance-{index}",
            sdk_version=f"unleash-client-node:{index % 50}.{index // 50 % 100}.0",
            first_seen_at=now,
            seen_at=now,
        )
        for index in range(number)
    )
    flag = Flag.objects.filter(project="many")[0]
    FlagUsage.objects.create(
        application_id=large.pk, flag_id=flag.pk, environment="production", last_used_at=now
    )
    refresh_applications([large.pk])


def measure(browser: Any, address: str) -> tuple[int, int, float, float]:
    """Status, bytes, and the least ms on the clock and of CPU."""
    walls, cpus = [], []
    for _ in range(ROUNDS):
        cpu, wall = time.process_time(), time.perf_counter()
        page = browser.get(address)
        walls.append((time.perf_counter() - wall) * 1e3)
        cpus.append((time.process_time() - cpu) * 1e3)
    return page.status_code, len(page.content), min(walls), min(cpus)


def main() -> None:
    flags, instances = [*map(int, sys.argv[1:]), *(20_000, 100_000)[len(sys.argv) - 1 :]]
    with data_directory():
        from django.conf import settings
        from django.test import Client, override_settings

        from groups.permissions import BuiltIn
        from tests.support.cast import make_user

        fill(flags, instances)
        files = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
        with override_settings(ALLOWED_HOSTS=["*"], STORAGES={**settings.STORAGES, "staticfiles": files}):
            browser = Client()
            browser.force_login(make_user("admin", root_role=BuiltIn.ADMIN))
            for address in PAGES:
                status, size, wall, cpu = measure(browser, address)
                sys.stdout.write(f"{status} {size:9,} bytes {wall:6.0f} ms {cpu:6.0f} ms CPU  {address}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
