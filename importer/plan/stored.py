"""Reads stored flags as documents, to compare them with an import, in a fixed number of statements.

A flag's document holds everything that an import can change, in one environment:
``type description stale impressionData archived enabled variants strategies tags links parents``.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from flagadmin.core.document import Document
from playground.engine.definitions import VariantDefinition
from projects.definition_parts import FlagParts, read_flag_parts


@dataclass(slots=True)
class StoredFlag:
    """A stored flag. ``document`` is None for a flag of another project, which an import cannot change.

    ``strategy_ids`` are in the order of the document's strategies. ``switched_on``: on, unless archived.
    """

    id: int
    name: str
    project: str
    archived: bool
    document: Document | None = None
    strategy_ids: list[str] = field(default_factory=list)
    switched_on: bool = False


_FLAGS = """
SELECT id, name, project_id, archived_at IS NOT NULL, type, description, stale, impression_data
  FROM projects_flag WHERE name = ANY(%(names)s)
"""
_TAGS = """
SELECT flag_id, tag_type_id, value FROM projects_flagtag WHERE flag_id = ANY(%(flags)s)
"""
_LINKS = """
SELECT flag_id, url, title FROM projects_flaglink WHERE flag_id = ANY(%(flags)s) ORDER BY flag_id, created_at, id
"""


def read_flags(names: Collection[str], *, project: str, environment: str) -> dict[str, StoredFlag]:
    """The stored flags with these names, by name. Flags of the project have documents.

    An archived flag is disabled. A fixed number of statements for each BATCH of flags.
    """
    if not names:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_FLAGS, {"names": list(names)})
        rows = cursor.fetchall()
        parts = read_flag_parts(cursor, [row[0] for row in rows], environment)
        stored = {}
        for flag_id, name, owner, is_archived, *values in rows:
            enabled, variants = parts.read_state(flag_id)
            flag = stored[name] = StoredFlag(flag_id, name, owner, is_archived, switched_on=enabled)
            if owner == project:
                flag.document = _make_document(is_archived, enabled, variants, *values)
                _add_parts(flag, flag.document, parts)
        _add_tags_and_links(cursor, {flag.id: flag.document for flag in stored.values() if flag.document})
    return stored


def _make_document(
    archived: bool,
    enabled: bool,
    variants: list[VariantDefinition],
    kind: str,
    description: str | None,
    stale: bool,
    impression_data: bool,
) -> Document:
    return {
        "type": kind,
        "description": description,
        "stale": stale,
        "impressionData": impression_data,
        "archived": archived,
        "enabled": enabled and not archived,
        "variants": variants,
        "strategies": [],
        "tags": [],
        "links": [],
        "parents": [],
    }


def _add_parts(flag: StoredFlag, document: Document, parts: FlagParts) -> None:
    for strategy in parts.strategies.get(flag.id, ()):
        flag.strategy_ids.append(strategy.pop("id"))
        document["strategies"].append(strategy)
    document["parents"] = parts.parents.get(flag.id, [])


def _add_tags_and_links(cursor: Any, documents: dict[int, Document]) -> None:
    if not documents:
        return
    flags = {"flags": list(documents)}
    cursor.execute(_TAGS, flags)
    for flag_id, tag_type, value in cursor.fetchall():
        documents[flag_id]["tags"].append([tag_type, value])
    for document in documents.values():
        document["tags"].sort()
    cursor.execute(_LINKS, flags)
    for flag_id, url, title in cursor.fetchall():
        documents[flag_id]["links"].append({"url": url, "title": title})
