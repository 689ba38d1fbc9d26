"""Finds which flags evaluate in another way after an import, without importing."""

from typing import Any

from flagadmin.core.document import Document
from importer.plan.import_plan import Action, FlagPlan, Plan
from playground.engine.definitions import FlagDefinition
from projects.definitions import Definitions, find_used_segments, read_definitions
from projects.models import Segment


def find_changes(plan: Plan) -> tuple[set[str], Definitions]:
    """The names of the flags that evaluate in another way after the import, and their definitions then.

    Strategies get temporary ids, new segments negative ids.
    """
    if plan.target is None or plan.references is None:
        return set(), Definitions([], {})
    project, environment = plan.target.project.id, plan.target.environment
    planned = list(plan.with_action(Action.CREATE, Action.CHANGE))
    stored = read_definitions([project], environment, flags=[flag.name for flag in planned])
    before = stored.by_name()
    after = {
        flag.name: _make_definition(flag, flag.after, project)
        for flag in planned
        if flag.after is not None and not flag.after["archived"]
    }
    names = {flag.name for flag in planned}
    changed = {
        name for name in names if _select_evaluated(before.get(name)) != _select_evaluated(after.get(name))
    }
    return changed, _add_segments(plan, [after[name] for name in sorted(changed & after.keys())], stored)


def _select_evaluated(flag: FlagDefinition | None) -> dict[str, Any] | None:
    """Selects what evaluations depend on."""
    if flag is None:
        return None
    strategies = [{**strategy, "id": ""} for strategy in flag["strategies"]]
    return {**flag, "strategies": strategies, "impression_data": False, "stale": False}


def _make_definition(planned: FlagPlan, after: Document, project: str) -> FlagDefinition:
    return {
        "name": planned.name,
        "project": project,
        "enabled": after["enabled"],
        "impression_data": after["impressionData"],
        "stale": after["stale"],
        "variants": after["variants"],
        "strategies": [
            strategy | {"id": f"planned-{planned.name}-{index}"}
            for index, strategy in enumerate(after["strategies"])
        ],
        "dependencies": after["parents"],
    }


def _add_segments(plan: Plan, flags: list[FlagDefinition], present: Definitions) -> Definitions:
    """These flags with the segments they use: stored ones and those that the import would create."""
    assert plan.references is not None
    new: dict[int, Any] = {segment["id"]: segment for segment in plan.references.new_segments}
    rows = Segment.objects.filter(id__in=find_used_segments(flags) - new.keys() - present.segments.keys())
    stored = {row.id: row.definition for row in rows}
    return Definitions.of(flags, present.segments | stored | new)
