"""Counts instances by SDK version: the most used ones, and the others in one number."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.utils import timezone

from flagadmin.core.db.statements import fetch_rows
from projects.applications.sdk_versions import is_version, split_sdk, version_key

MAX_INSTANCES = 20_000  # counted; of more, the same part of each application
MAX_READ = 1_000
MAX_SDKS = 8
MAX_VERSIONS = 12
OTHERS = "Other SDKs and versions"

# Distinct pairs are hashed; count(DISTINCT …) would sort all instances. ``most`` is null if all are counted.
_COUNTED = """
SELECT sdk_version, number, (sum(number) OVER ())::bigint, count(*) OVER (), sampled FROM (
       SELECT sdk_version, sampled, count(*) AS number FROM (
              SELECT DISTINCT i.sdk_version, i.instance_id, line.most IS NOT NULL AS sampled
                FROM ({lines}) AS line CROSS JOIN LATERAL (
                     SELECT sdk_version, instance_id FROM projects_applicationinstance
                      WHERE application_id = line.application_id AND seen_at >= %(since)s AND sdk_version <> ''
                        AND (line.environments IS NULL OR environment = ANY(line.environments))
                      ORDER BY instance_id LIMIT line.most) AS i) AS pairs GROUP BY 1, 2) AS counted
 ORDER BY number DESC, sdk_version LIMIT %(versions)s
"""
_OF_PROJECT = """
SELECT application_id, environments, CASE WHEN total > %(instances)s THEN
       ceil(%(instances)s * instance_count / total) END::bigint AS most
  FROM (SELECT *, sum(instance_count) OVER () AS total FROM projects_projectapplication
         WHERE project_id = %(key)s) AS lines"""
_OF_APPLICATION = """
SELECT %(key)s::bigint AS application_id, NULL::text[] AS environments, CASE WHEN (
       SELECT count(*) FROM (SELECT FROM projects_applicationinstance WHERE application_id = %(key)s
                              LIMIT %(instances)s + 1) AS first) > %(instances)s THEN %(instances)s END AS most"""


class Adoption(dict[str, list[tuple[str, int, bool]]]):
    """The versions of each SDK: (version, instances, whether it is the oldest of several), the newest first.

    ``sampled``: how many instances were counted, if there are too many to count all; otherwise 0.
    """

    sampled = 0


def read_sdk_adoption(project_id: str) -> Adoption:
    """The instances of a project's applications. One query.

    The most used versions, with the oldest; a last line of an SDK stands for its others.
    """
    return _read_adoption(_OF_PROJECT, project_id)


def read_application_adoption(application_id: int) -> Adoption:
    """The same for the instances of one application. One query."""
    return _read_adoption(_OF_APPLICATION, application_id)


def _read_adoption(lines: str, key: Any) -> Adoption:
    parameters = {
        "key": key,
        "since": timezone.now() - settings.APPLICATION_INSTANCE_WINDOW,
        "instances": MAX_INSTANCES,
        "versions": MAX_READ,
    }
    rows = fetch_rows(_COUNTED.format(lines=lines), parameters)
    numbers: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for sdk, number, *_ in rows:
        name, version = split_sdk(sdk)
        numbers[name][version] += number
    most_used = sorted(numbers, key=lambda name: -sum(numbers[name].values()))[:MAX_SDKS]
    adoption = Adoption(
        (name, _make_lines(numbers[name])) for name in sorted(most_used) if any(numbers[name])
    )
    if rows and (remainder := _sum_others(rows, numbers, most_used)):
        adoption[OTHERS] = [remainder]
    adoption.sampled = rows[0][2] if rows and rows[0][4] else 0
    return adoption


def _make_lines(numbers: dict[str, int]) -> list[tuple[str, int, bool]]:
    versions = sorted(filter(None, numbers), key=version_key, reverse=True)
    known = [version for version in versions if is_version(version)]
    oldest = known[-1] if len(known) > 1 else None
    shown_versions = set(sorted(versions, key=lambda version: -numbers[version])[:MAX_VERSIONS]) | {oldest}
    lines = [
        (version, numbers[version], version == oldest) for version in versions if version in shown_versions
    ]
    if rest := [numbers[version] for version in versions if version not in shown_versions]:
        lines.append((f"{len(rest):,} more", sum(rest), False))
    return lines


def _sum_others(
    rows: Sequence[tuple[str, int, int, int, bool]], numbers: dict[str, dict[str, int]], shown_sdks: list[str]
) -> tuple[str, int, bool] | None:
    """Sums up the versions that were not read, and those of SDKs without a chart."""
    _, _, instances, versions, _ = rows[0]
    left = [number for name in numbers if name not in shown_sdks for number in numbers[name].values()]
    unread = versions - len(rows)
    if not left and not unread:
        return None
    return f"{len(left) + unread:,} more", sum(left) + instances - sum(row[1] for row in rows), False
