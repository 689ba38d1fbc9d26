"""A plan as the definitions that the engine reads: what would be evaluated had it been applied. Nothing is written."""

from typing import Any

from importer.plan.import_plan import Action, FlagPlan
from importer.plan.build import Plan
from importer.plan.stored import Document
from projects.definitions import Definitions, definitions
from projects.models import Segment


def planned_definitions(plan: Plan) -> Definitions:
    """The active flags of the target project in the target environment, as they would be after the import.

    Strategies that would be new have ids of their own, and segments that would be new negative ones.
    """
    if plan.target is None or plan.words is None:
        return Definitions([], {})
    project, environment = plan.target.project.id, plan.target.environment
    present = definitions([project], environment)
    flags = {flag["name"]: flag for flag in present.flags}
    for planned in plan.with_action(Action.CREATE, Action.CHANGE):
        if planned.after is None or planned.after["archived"]:
            flags.pop(planned.name, None)
        else:
            flags[planned.name] = _definition(planned, planned.after, project)
    return Definitions([flags[name] for name in sorted(flags)], _segments(plan, flags, present))


def _definition(planned: FlagPlan, after: Document, project: str) -> Document:
    return {
        "name": planned.name,
        "project": project,
        "enabled": after["enabled"],
        "impression_data": after["impressionData"],
        "variants": after["variants"],
        "strategies": [
            {key: value for key, value in strategy.items() if key != "sortOrder"}
            | {"id": f"planned-{planned.name}-{index}"}
            for index, strategy in enumerate(after["strategies"])
        ],
        "dependencies": after["parents"],
    }


def _segments(plan: Plan, flags: dict[str, Document], present: Definitions) -> dict[int, Document]:
    """The segments that these flags use: those here, and those that the import would make."""
    assert plan.words is not None
    used: set[int] = {
        segment
        for flag in flags.values()
        for strategy in flag["strategies"]
        for segment in strategy["segments"]
    }
    new: dict[int, Any] = {segment["id"]: segment for segment in plan.words.new_segments}
    stored = Segment.objects.filter(id__in=used - new.keys() - present.segments.keys())
    here = {s.id: {"id": s.id, "name": s.name, "constraints": s.constraints} for s in stored}
    return {key: segment for key, segment in {**present.segments, **here, **new}.items() if key in used}
