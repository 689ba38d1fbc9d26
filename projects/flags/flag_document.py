"""The document of one flag with all its data, read in three statements, and one more for its owner."""

from collections import defaultdict
from datetime import timedelta
from typing import Any

import orjson
from django.utils import timezone

from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.document import Document
from flagadmin.core.errors import NotFound
from flagadmin.core.http.responses import iso
from groups.access import Caller
from groups.models import User
from playground.engine.definitions import StrategyDefinition
from projects.flags.lifecycle.queries import ORDER, make_stage_document
from projects.flags.queries import (
    make_creator_document,
    make_dependency_document,
    make_link_document,
    make_owner_member,
    make_person_document,
)
from projects.models import Flag, FlagLink, LifecycleStage
from projects.strategies.fields import SELECTED, from_row

# The environments of the flag's project, with the flag's settings there.
_ENVIRONMENTS = """
SELECT p.environment_id, e.type, e.sort_order, coalesce(f.enabled, false), coalesce(f.variants, '[]'), s.seen_at,
       (SELECT ARRAY[coalesce(sum(yes), 0), coalesce(sum(no), 0)]::bigint[] FROM projects_usagehour u
         WHERE u.flag_id = %(flag)s AND u.environment = p.environment_id AND u.hour > %(since)s)
  FROM projects_projectenvironment p
  JOIN projects_environment e ON e.name = p.environment_id
  LEFT JOIN projects_flagenvironment f ON f.flag_id = %(flag)s AND f.environment_id = p.environment_id
  LEFT JOIN projects_flaglastseen s ON s.flag_id = %(flag)s AND s.environment = p.environment_id
 WHERE p.project_id = %(project)s ORDER BY e.sort_order, e.name
"""
_STRATEGIES = f"""
SELECT s.environment_id, s.id::text,
       ARRAY(SELECT l.segment_id FROM projects_strategysegment l WHERE l.strategy_id = s.id ORDER BY l.id), {SELECTED}
  FROM projects_strategy s WHERE s.flag_id = %(flag)s ORDER BY s.sort_order, s.id
"""  # noqa: S608 - columns of our own
_STAGE = ("stage", "entered_at", "status")
_RELATED = """
SELECT (SELECT jsonb_agg(jsonb_build_array(p.name, d.enabled, d.variants) ORDER BY d.id)
          FROM projects_dependency d JOIN projects_flag p ON p.id = d.parent_id WHERE d.flag_id = %(flag)s),
       ARRAY(SELECT c.name FROM projects_dependency d JOIN projects_flag c ON c.id = d.flag_id
              WHERE d.parent_id = %(flag)s AND c.archived_at IS NULL ORDER BY c.name),
       (SELECT jsonb_agg(jsonb_build_array(l.id, l.url, l.title) ORDER BY l.created_at, l.id)
          FROM projects_flaglink l WHERE l.flag_id = %(flag)s),
       EXISTS (SELECT FROM projects_favouriteflag v WHERE v.flag_id = %(flag)s AND v.user_id = %(user)s),
       u.id, u.username, u.name, c.stage, c.entered_at, c.status
  FROM projects_flag f
  LEFT JOIN groups_user u ON u.id = f.created_by_id
  LEFT JOIN LATERAL (SELECT stage, entered_at, status FROM projects_lifecyclestage WHERE flag_id = f.id
                      ORDER BY array_position(%(stages)s, stage::text) DESC LIMIT 1) c ON true
 WHERE f.id = %(flag)s
"""


def read_flag_document(flag: Flag, *, caller: Caller) -> Document:
    """The response to ``GET …/features/:name``. Raises NotFound if the flag has just been deleted."""
    user_id = caller.user.pk if caller.user else None
    where = {"flag": flag.pk, "user": user_id, "stages": ORDER}
    environments = _read_environments(flag)
    rows = fetch_rows(_RELATED, where, prepared=True)
    if not rows:
        raise NotFound(f"Flag {flag.name} not found in project {flag.project_id}.")
    dependencies, children, links, is_favorite, creator_id, username, name, *stage = rows[0]
    creator = User(id=creator_id, username=username, name=name) if creator_id else None
    document = {
        "environments": environments,
        "name": flag.name,
        "favorite": is_favorite,
        "impressionData": flag.impression_data,
        "description": flag.description,
        "project": flag.project_id,
        "stale": flag.stale,
        "createdAt": iso(flag.created_at),
        "type": flag.type,
        "archived": flag.is_archived,
        "dependencies": [make_dependency_document(*parent) for parent in _load_json(dependencies)],
        "children": children,
        "links": [
            make_link_document(FlagLink(id=link_id, url=url, title=title)) | {"feature": flag.name}
            for link_id, url, title in _load_json(links)
        ],
        "createdBy": make_creator_document(creator),
        "collaborators": {"users": [make_person_document(creator)] if creator else []},
        **make_owner_member(flag),
    }
    if stage[0] is None:  # it was created before lifecycle stages existed
        return document
    return document | {
        "lifecycle": make_stage_document(LifecycleStage(**dict(zip(_STAGE, stage, strict=True))))
    }


def read_flag_environment_document(flag: Flag, environment: str) -> Document:
    """A flag in one environment of its project; ``name`` is the flag's. Raises NotFound."""
    for document in _read_environments(flag):
        if document["name"] == environment:
            strategies = [{**strategy, "featureName": flag.name} for strategy in document["strategies"]]
            return document | {"strategies": strategies, "name": flag.name, "environment": environment}
    raise NotFound(f"Project {flag.project_id} has no environment {environment}.")


def _read_environments(flag: Flag) -> list[Document]:
    where: dict[str, Any] = {
        "flag": flag.pk,
        "project": flag.project_id,
        "since": timezone.now() - timedelta(hours=1),
    }
    strategies: dict[str, list[StrategyDefinition]] = defaultdict(list)
    for environment, strategy_id, segments, *values in fetch_rows(_STRATEGIES, where, prepared=True):
        strategies[environment].append(from_row(values, id=strategy_id, segments=segments))
    rows = fetch_rows(_ENVIRONMENTS, where, prepared=True)
    return [
        {
            "name": name,
            "lastSeenAt": iso(seen_at),
            "variants": orjson.loads(variants),
            "enabled": enabled,
            "type": kind,
            "sortOrder": sort_order,
            "strategies": strategies[name],
            "yes": yes,
            "no": no,
        }
        for name, kind, sort_order, enabled, variants, seen_at, [yes, no] in rows
    ]


def _load_json(values: str | None) -> list[Any]:
    return orjson.loads(values) if values else []
