"""Loads the strategy types, legal values, segments and tag types that flags of a project may use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import orjson

from flagadmin.core.change_options import get_change_options
from flagadmin.core.db.statements import fetch_row
from projects.models import ContextField


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names that flags of a project may use. The import adds those of its file (``dataclasses.replace``).

    ``legal_values`` contains only fields with legal values. ``segments`` are names by id, of global segments and the
    project's.
    """

    strategy_types: frozenset[str] = frozenset()
    legal_values: Mapping[str, frozenset[str]] = field(default_factory=dict)
    segments: Mapping[int, str] = field(default_factory=dict)
    tag_types: frozenset[str] = frozenset()


_NAMES = """
SELECT ARRAY(SELECT name FROM projects_strategytype), ARRAY(SELECT name FROM projects_tagtype),
       ARRAY(SELECT id FROM projects_segment WHERE project_id IS NULL OR project_id = %(project)s ORDER BY name),
       ARRAY(SELECT name FROM projects_segment WHERE project_id IS NULL OR project_id = %(project)s ORDER BY name),
       (SELECT json_object_agg(name, legal_values)::text FROM projects_contextfield
         WHERE (project_id IS NULL OR project_id = %(project)s) AND legal_values <> '[]')
"""


def load_known_names(project_id: str) -> KnownNames:
    """Loads the names in one statement: most changes of strategies and variants need them."""
    types, tag_types, segment_ids, segments, fields = fetch_row(_NAMES, {"project": project_id})
    legal = {} if get_change_options().comes_from_elsewhere else orjson.loads(fields or "{}")
    return KnownNames(
        strategy_types=frozenset(types),
        legal_values={name: _values_of(listed) for name, listed in legal.items()},
        segments=dict(zip(segment_ids, segments, strict=True)),
        tag_types=frozenset(tag_types),
    )


def read_legal_values(project_id: str | None) -> dict[str, frozenset[str]]:
    """Legal values by context field, of the fields that the project (None: every project) can use."""
    if get_change_options().comes_from_elsewhere:
        return {}
    fields = ContextField.objects.usable_in(project_id or "")
    return {name: _values_of(listed) for name, listed in fields.values_list("name", "legal_values") if listed}


def _values_of(listed: Iterable[Mapping[str, str]]) -> frozenset[str]:
    return frozenset(item["value"] for item in listed)
