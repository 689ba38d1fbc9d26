"""The document of one flag with all its data, read in three statements, and one more for its owner.

A flag in each environment of its project, as cards of its page.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from urllib.parse import urlencode

import orjson
from django.urls import reverse
from django.utils import timezone

from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.document import Document
from flagadmin.core.errors import NotFound
from flagadmin.core.http.responses import iso
from flagadmin.core.lists.charts import format_percent
from groups.access import Caller, Permission
from groups.models import User
from playground.engine.definitions import StrategyDefinition
from projects.console import flag_url
from projects.flags.insights.evaluations import Evaluations, read_last_evaluations
from projects.flags.lists.cells import Cell, Toggle, read_flag_cells, toggle_of
from projects.flags.lists.strategy_lines import Palette, Share, StrategyLine, make_strategy_lines
from projects.flags.queries import (
    ORDER,
    make_creator_document,
    make_dependency_document,
    make_link_document,
    make_owner_member,
    make_person_document,
    make_stage_document,
)
from projects.models import Environment, Flag, FlagLink, LifecycleStage, Segment
from projects.states import has_enabled
from projects.strategies.fields import SELECTED, from_row
from projects.strategies.sentences import MAX_LISTED

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


MAX_STRATEGIES = 30  # in all environments; above this, each environment shows only its first few
FIRST_STRATEGIES = 3
FEW_CONDITIONS = 3  # of each strategy, if there are more than MAX_STRATEGIES
MANY_STRATEGIES = 10  # an environment with more lists one condition of each
MAX_OPEN = 6  # environments shown in full; the others are one line each
MAX_VARIANTS = 20  # of each comparison; the others are summed up
EVERYONE = 100.0
MAX_SPLITS = 3  # environments whose variants are compared with the measured ones


@dataclass(frozen=True, slots=True)
class FlagInEnvironment:
    """A card. ``is_open``: its strategies and chart are shown; not where one strategy turns it on for everyone outside
    production. ``warning``: a state that its switch does not show."""

    name: str
    production: bool
    cell: Cell
    switch: Toggle
    is_open: bool
    strategies: Sequence[StrategyLine]
    total: int
    order: str
    warning: str
    variants: Sequence[Share]
    evaluations: Evaluations
    last_evaluated: datetime | None
    focus: str
    new_strategy: str
    edit_variants: str
    default_strategy: str
    may_change: bool

    @property
    def more_strategies(self) -> int:
        return self.total - len(self.strategies)

    @property
    def percent_on(self) -> str:
        on = self.evaluations.percent_on
        return "" if on is None else format_percent(on)


@dataclass(frozen=True, slots=True)
class Split:
    """The variants in an environment: weights as configured, and how often SDKs reported each."""

    environment: str
    weights: Mapping[str, float]
    measured: Mapping[str, int]


def make_environment_cards(
    flag: Flag, document: Document, evaluations: Mapping[str, Evaluations], *, focus: str, caller: Caller
) -> Iterator[FlagInEnvironment]:
    """The cards in the order of the project's environments; ``focus`` is shown in full."""
    segments = dict(Segment.objects.usable_in(flag.project_id).values_list("id", "name"))
    seen, palette = read_last_evaluations([flag.pk])[flag.pk], Palette()
    [row] = read_flag_cells([flag])
    cells = {cell.environment: cell for cell in row.cells}
    are_few = sum(len(state["strategies"]) for state in document["environments"]) <= MAX_STRATEGIES
    for index, place in enumerate(document["environments"]):
        name, strategies = place["name"], place["strategies"]
        query, may = urlencode({"environmentId": name}), _may(caller, flag, name)
        edit = f"{flag_url(flag.project_id, flag.name, 'strategy-edit')}?{query}"
        conditions = MAX_LISTED if are_few else FEW_CONDITIONS if len(strategies) <= MANY_STRATEGIES else 1
        lines = make_strategy_lines(strategies, segments, palette, edit, limit=conditions)
        limit = len(strategies) if are_few or focus == name else 1 if focus else FIRST_STRATEGIES
        is_plain = len(strategies) == 1 and not (
            place["variants"] or strategies[0]["variants"] or strategies[0]["title"]
        )
        is_folded = is_plain and cells[name].share == EVERYONE and place["type"] != Environment.PRODUCTION
        is_open = focus == name or (index < MAX_OPEN and not is_folded)
        yield FlagInEnvironment(
            name=name,
            production=place["type"] == Environment.PRODUCTION,
            cell=cells[name],
            switch=toggle_of(flag, place, caller=caller),
            is_open=is_open,
            strategies=list(islice(lines, limit)) if is_open else [],
            total=len(strategies),
            order=",".join(strategy["id"] for strategy in strategies),
            warning=_find_warning(place),
            variants=palette.shares(place["variants"]),
            evaluations=evaluations[name],
            last_evaluated=seen.get(name),
            focus=urlencode({"environment": name}),
            new_strategy=f"{flag_url(flag.project_id, flag.name, 'strategy-new')}?{query}"
            if may(Permission.CREATE_FEATURE_STRATEGY)
            else "",
            edit_variants=f"{flag_url(flag.project_id, flag.name, 'flag-variants')}?{query}"
            if may(Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS)
            else "",
            default_strategy=reverse("default-strategy", args=[flag.project_id, name]),
            may_change=may(Permission.UPDATE_FEATURE_STRATEGY),
        )


def _may(caller: Caller, flag: Flag, environment: str) -> Any:
    def may(permission: Permission) -> bool:
        return not flag.is_archived and caller.can(
            permission, project=flag.project_id, environment=environment
        )

    return may


def _find_warning(state: Document) -> str:
    if state["enabled"] and not state["strategies"]:
        return "Enabled without a strategy: on for everyone."
    if state["enabled"] and not has_enabled(state["strategies"]):
        return "All strategies are disabled: off for everyone."
    return ""


def make_splits(document: Document, evaluations: Mapping[str, Evaluations]) -> list[Split]:
    """The environments with variants, those with the most evaluations first."""
    splits = [
        Split(place["name"], _read_weights(place), evaluations[place["name"]].variants)
        for place in document["environments"]
        if place["variants"] or any(strategy["variants"] for strategy in place["strategies"])
    ]
    largest = sorted(splits, key=lambda split: -sum(split.measured.values()))[:MAX_SPLITS]
    return [_limit_split(split) for split in largest]


def _limit_split(split: Split) -> Split:
    """Limits a split to the largest variants, and one line for the others."""
    names = sorted(
        split.weights.keys() | split.measured.keys(),
        key=lambda name: (-split.measured.get(name, 0), -split.weights.get(name, 0), name),
    )
    largest, others = set(names[:MAX_VARIANTS]), names[MAX_VARIANTS:]
    if len(others) < 2:
        return split
    line = f"{len(others):,} others"

    def merge_small(numbers: Mapping[str, Any]) -> dict[str, Any]:
        shown = {name: number for name, number in numbers.items() if name in largest}
        left = sum(numbers.get(name, 0) for name in others)
        return {**shown, line: left} if left else shown

    return Split(split.environment, merge_small(split.weights), merge_small(split.measured))


def _read_weights(state: Document) -> dict[str, float]:
    """The weights by name if all enabled strategies agree; empty if they differ."""
    counted = [strategy for strategy in state["strategies"] if not strategy["disabled"]]
    lists = [strategy["variants"] or state["variants"] for strategy in counted] or [state["variants"]]
    weights = [{variant["name"]: variant["weight"] for variant in variants} for variants in lists]
    return weights[0] if all(weights_of_strategy == weights[0] for weights_of_strategy in weights) else {}
