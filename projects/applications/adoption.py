"""How many instances run each SDK version, bounded: the most used ones, and the others as one number."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils import timezone

from projects.applications.sdk_versions import is_version, split_sdk, version_key

MOST_READ = 1_000
MOST_SDKS = 8
MOST_VERSIONS = 12
Adoption = dict[str, list[tuple[str, int, bool]]]
OTHERS = "Other SDKs and versions"

# Distinct pairs are hashed; count(DISTINCT …) would sort all instances.
_COUNTED = """
SELECT sdk_version, number, (sum(number) OVER ())::bigint, count(*) OVER () FROM (
       SELECT sdk_version, count(*) AS number FROM (
              SELECT DISTINCT i.sdk_version, i.instance_id FROM {source}
                 AND i.seen_at >= %s AND i.sdk_version <> '') AS pairs GROUP BY 1) AS counted
 ORDER BY number DESC, sdk_version LIMIT %s
"""
_OF_PROJECT = """projects_projectapplication line JOIN projects_applicationinstance i
    ON i.application_id = line.application_id AND i.environment = ANY(line.environments)
 WHERE line.project_id = %s"""
_OF_APPLICATION = "projects_applicationinstance i WHERE i.application_id = %s"


def sdk_adoption(project_id: str) -> Adoption:
    """For each SDK: (version, instances, whether it is the oldest of several), the newest first. One query.

    The most used versions, with the oldest; a last line of an SDK stands for its others.
    """
    return _adoption(_OF_PROJECT, project_id)


def application_adoption(application_id: int) -> Adoption:
    """The same for the instances of one application. One query."""
    return _adoption(_OF_APPLICATION, application_id)


def _adoption(source: str, key: Any) -> Adoption:
    since = timezone.now() - settings.APPLICATION_INSTANCE_WINDOW
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED.format(source=source), [key, since, MOST_READ])
        rows = cursor.fetchall()
    numbers: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for sdk, number, _, _ in rows:
        name, version = split_sdk(sdk)
        numbers[name][version] += number
    most_used = sorted(numbers, key=lambda name: -sum(numbers[name].values()))[:MOST_SDKS]
    found = {name: _lines(numbers[name]) for name in sorted(most_used) if any(numbers[name])}
    if rows and (others := _others(rows, numbers, most_used)):
        found[OTHERS] = [others]
    return found


def _lines(numbers: dict[str, int]) -> list[tuple[str, int, bool]]:
    versions = sorted(filter(None, numbers), key=version_key, reverse=True)
    known = [version for version in versions if is_version(version)]
    oldest = known[-1] if len(known) > 1 else None
    shown = set(sorted(versions, key=lambda version: -numbers[version])[:MOST_VERSIONS]) | {oldest}
    lines = [(version, numbers[version], version == oldest) for version in versions if version in shown]
    if rest := [numbers[version] for version in versions if version not in shown]:
        lines.append((f"{len(rest):,} more", sum(rest), False))
    return lines


def _others(
    rows: Sequence[tuple[str, int, int, int]], numbers: dict[str, dict[str, int]], shown: list[str]
) -> tuple[str, int, bool] | None:
    """What is left: the versions that were not read, and those of SDKs without a chart."""
    _, _, instances, versions = rows[0]
    left = [number for name in numbers if name not in shown for number in numbers[name].values()]
    unread = versions - len(rows)
    if not left and not unread:
        return None
    return f"{len(left) + unread:,} more", sum(left) + instances - sum(row[1] for row in rows), False
