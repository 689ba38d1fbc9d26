"""Reverts a flag to one of its versions, in one transaction and with one audit event."""

from collections.abc import Iterable, Sequence

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected, check_expected, hash_document
from flagadmin.core.errors import Conflict, NoAccess, Problem
from groups.access import Caller, missing
from projects.access import access_flag_for_update
from projects.flags.owner_rules import find_remaining_owner
from projects.flags.revert.plan import (
    EVERYTHING,
    Choice,
    Document,
    PlannedPart,
    Target,
    format_moment,
    plan_revert,
    restore_parts,
)
from projects.history.flag_parts import DEPENDENCIES, DETAILS, FlagPart
from projects.history.versions import seen_version
from projects.models import Dependency, Flag, FlagEnvironment, ProjectEnvironment, Strategy
from projects.strategies.actions import set_segments
from projects.strategies.fields import assign


@transactional
def revert_flag(
    project_id: str,
    name: str,
    target: Target,
    *,
    choice: Choice = EVERYTHING,
    expected: Expected = None,
    caller: Caller,
) -> list[FlagPart]:
    """Makes the chosen parts of the flag what they were, and returns those that changed.

    A strategy that still exists keeps its row; one that was removed comes back with its id. Segments, tags and links
    stay as they are. ``expected`` refers to the flag's present version, or to what its `GET` shows of that.

    Raises NotFound, NoAccess naming the environments in which a permission is missing, EditConflict, and Conflict
    naming all that cannot be restored.
    """
    flag = access_flag_for_update(caller, project_id, name, None)
    plan = plan_revert(flag, target, lock=True, caller=caller)
    _check_unchanged(expected, plan.before)
    chosen = [planned for planned in plan.parts if choice.includes(planned.part)]
    return restore(flag, plan.before, chosen, subject=format_moment(target.at), caller=caller)


def restore(
    flag: Flag, before: Document, chosen: Sequence[PlannedPart], *, subject: str | None, caller: Caller
) -> list[FlagPart]:
    """Writes these parts of a locked flag, whose present version is ``before``, with one event.

    ``subject`` is when the flag was so, None for what takes back one change. Raises NoAccess, Conflict.
    """
    _check_permissions(chosen, flag.project_id)
    _check_restorable(chosen, flag.name)
    parts = [planned.part for planned in chosen]
    if not parts:
        return []
    for part in parts:
        _write(flag, part)
    record(
        Event(
            type=EventType.FEATURE_REVERTED,
            project=flag.project_id,
            feature=flag.name,
            subject=subject,
            before=before,
            after=restore_parts(before, parts),
        ),
        actor=caller,
    )
    return parts


def _check_unchanged(expected: Expected, before: Document) -> None:
    places = ProjectEnvironment.objects.filter(project=before["project"])
    if expected is not None:
        seen = seen_version(before, places.values_list("environment_id", flat=True))
        if hash_document(seen) not in expected:
            check_expected(expected, before)


def _check_permissions(chosen: Iterable[PlannedPart], project: str) -> None:
    refused = [planned for planned in chosen if planned.missing]
    if not refused:
        return
    errors = [
        missing(planned.missing[:1], project=project, environment=planned.part.environment or None)
        for planned in refused
    ]
    permissions = list(dict.fromkeys(p.value for planned in refused for p in planned.missing))
    raise NoAccess.missing(permissions, " ".join(dict.fromkeys(error.message for error in errors)))


def _check_restorable(chosen: Iterable[PlannedPart], name: str) -> None:
    refused = [planned for planned in chosen if planned.problems]
    if not refused:
        return
    problems: Sequence[Problem] = [problem for planned in refused for problem in planned.problems]
    places = " and ".join(planned.part.environment or planned.part.kind for planned in refused)
    reasons = "; ".join(problem.message for problem in problems[:5])
    raise Conflict(
        f"{name} cannot be reverted completely: {reasons}. Leave out {places} to revert the rest.",
        details=problems,
    )


def _write(flag: Flag, part: FlagPart) -> None:
    if part.kind == DETAILS:
        after = part.after
        flag.description, flag.type, flag.stale = after["description"], after["type"], after["stale"]
        flag.impression_data = after["impressionData"]
        owner = find_remaining_owner(after["owner"])
        flag.owner_user_id, flag.owner_group_id = owner["owner_user_id"], owner["owner_group_id"]
        flag.save(update_fields=["description", "type", "stale", "impression_data", *owner])
    elif part.kind == DEPENDENCIES:
        _write_parents(flag, part)
    else:
        _write_environment(flag, part)


def _write_parents(flag: Flag, part: FlagPart) -> None:
    """Replaces all, because their ids are their order."""
    dependencies = part.after["dependencies"]
    parents = Flag.objects.filter(name__in=[dependency["feature"] for dependency in dependencies])
    ids = dict(parents.values_list("name", "pk"))
    Dependency.objects.filter(flag=flag).delete()
    Dependency.objects.bulk_create(
        Dependency(
            flag=flag,
            parent_id=ids[dependency["feature"]],
            enabled=dependency["enabled"],
            variants=dependency["variants"],
        )
        for dependency in dependencies
    )


def _write_environment(flag: Flag, part: FlagPart) -> None:
    before, after, environment = part.before, part.after, part.environment
    if any(before[key] != after[key] for key in ("enabled", "variants")):
        FlagEnvironment.objects.update_or_create(
            flag=flag,
            environment_id=environment,
            defaults={"enabled": after["enabled"], "variants": after["variants"]},
        )
    rows = Strategy.objects.filter(flag=flag, environment_id=environment)
    rows.exclude(pk__in=[each["id"] for each in after["strategies"]]).delete()
    stored = {str(row.pk): row for row in rows}
    known = {each["id"]: each for each in before["strategies"]}
    for document in after["strategies"]:
        if known.get(document["id"]) == document:
            continue
        is_new = document["id"] not in stored
        strategy = stored.get(document["id"]) or Strategy(
            pk=document["id"], flag=flag, environment_id=environment
        )
        assign(strategy, document)
        strategy.save(force_insert=is_new)
        set_segments(strategy, document["segments"])
