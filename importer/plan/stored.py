"""Reads stored flags as documents, to compare them with an import, in a fixed number of statements.

A flag's document holds what an import can change, in one environment:
``type description stale impressionData archived enabled variants strategies tags links parents``.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.db import connection

from projects.strategies.fields import SELECTED, from_row

Document = dict[str, Any]


@dataclass(slots=True)
class StoredFlag:
    """A stored flag. ``document`` is None for a flag of another project, which an import cannot change.

    ``strategy_ids`` are in the order of the document's strategies. ``switched_on``: on, were it not archived.
    """

    id: int
    name: str
    project: str
    archived: bool
    document: Document | None = None
    strategy_ids: list[str] = field(default_factory=list)
    switched_on: bool = False


_FLAGS = """
SELECT f.id, f.name, f.project_id, f.archived_at IS NOT NULL, f.type, f.description, f.stale, f.impression_data,
       coalesce(e.enabled AND f.archived_at IS NULL, false), e.variants, coalesce(e.enabled, false)
  FROM projects_flag f
  LEFT JOIN projects_flagenvironment e ON e.flag_id = f.id AND e.environment_id = %(environment)s
 WHERE f.name = ANY(%(names)s)
"""
_STRATEGIES = f"""
SELECT s.flag_id, s.id::text,
       ARRAY(SELECT l.segment_id FROM projects_strategysegment l WHERE l.strategy_id = s.id ORDER BY l.id), {SELECTED}
  FROM projects_strategy s
 WHERE s.flag_id = ANY(%(flags)s) AND s.environment_id = %(environment)s
 ORDER BY s.flag_id, s.sort_order, s.id
"""  # noqa: S608 - constant column names
_TAGS = """
SELECT flag_id, tag_type_id, value FROM projects_flagtag WHERE flag_id = ANY(%(flags)s)
"""
_LINKS = """
SELECT flag_id, url, title FROM projects_flaglink WHERE flag_id = ANY(%(flags)s) ORDER BY flag_id, created_at, id
"""
_PARENTS = """
SELECT d.flag_id, p.name, d.enabled, d.variants
  FROM projects_dependency d JOIN projects_flag p ON p.id = d.parent_id
 WHERE d.flag_id = ANY(%(flags)s) ORDER BY d.flag_id, d.id
"""


def read_flags(names: Collection[str], *, project: str, environment: str) -> dict[str, StoredFlag]:
    """The stored flags with these names, by name. Flags of the project have documents.

    An archived flag is disabled. Needs at most five statements.
    """
    if not names:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_FLAGS, {"names": list(names), "environment": environment})
        stored = {}
        for flag_id, name, owner, is_archived, *values, switched_on in cursor.fetchall():
            flag = stored[name] = StoredFlag(flag_id, name, owner, is_archived, switched_on=switched_on)
            if owner == project:
                flag.document = _document(is_archived, *values)
        _add_details(cursor, stored.values(), environment)
    return stored


def _document(
    archived: bool,
    kind: str,
    description: str | None,
    stale: bool,
    impression_data: bool,
    enabled: bool,
    variants: str | None,
) -> Document:
    return {
        "type": kind,
        "description": description,
        "stale": stale,
        "impressionData": impression_data,
        "archived": archived,
        "enabled": enabled,
        "variants": orjson.loads(variants) if variants else [],
        "strategies": [],
        "tags": [],
        "links": [],
        "parents": [],
    }


def _add_details(cursor: Any, flags: Iterable[StoredFlag], environment: str) -> None:
    by_id = {flag.id: flag for flag in flags if flag.document is not None}
    if not by_id:
        return
    parameters = {"flags": list(by_id), "environment": environment}
    cursor.execute(_STRATEGIES, parameters)
    for flag_id, strategy_id, segments, *values in cursor.fetchall():
        strategy = from_row(values, segments=segments)
        by_id[flag_id].document["strategies"].append(strategy)  # type: ignore[index]
        by_id[flag_id].strategy_ids.append(strategy_id)
    cursor.execute(_TAGS, parameters)
    tags: dict[int, list[list[str]]] = defaultdict(list)
    for flag_id, tag_type, value in cursor.fetchall():
        tags[flag_id].append([tag_type, value])
    for flag_id, listed in tags.items():
        by_id[flag_id].document["tags"] = sorted(listed)  # type: ignore[index]
    cursor.execute(_LINKS, parameters)
    for flag_id, url, title in cursor.fetchall():
        by_id[flag_id].document["links"].append({"url": url, "title": title})  # type: ignore[index]
    cursor.execute(_PARENTS, parameters)
    for flag_id, parent, enabled, variants in cursor.fetchall():
        by_id[flag_id].document["parents"].append(  # type: ignore[index]
            {"feature": parent, "enabled": enabled, "variants": orjson.loads(variants)}
        )
