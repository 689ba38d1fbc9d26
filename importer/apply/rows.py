"""Writes the flags of an import plan with bulk statements, a fixed number for any number of flags."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

import orjson
from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType
from flagadmin.core.db.statements import allocate_ids, copy_rows, execute
from flagadmin.core.document import Document
from flagadmin.core.errors import Conflict
from groups.access import Caller
from importer.plan.import_plan import Action, FlagPlan, Plan
from playground.models import SavedContext
from playground.saved_contexts.actions import check_may_change, make_event
from playground.saved_contexts.queries import make_saved_context_document
from projects.flags.payloads.stored import check_at_end
from projects.models.strategies import make_time_ordered_id
from projects.states import NOTHING
from projects.strategies.write import StateChange, replace_parents, write_states

Numbered = tuple[int, FlagPlan]
"""The id of a flag and its plan."""


def _format_json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _get_after(flag: FlagPlan) -> Document:
    assert flag.after is not None
    return flag.after


def write_details(
    flags: Sequence[Numbered],
    *,
    project: str,
    environment: str,
    now: datetime,
    environments: Sequence[str] = (),
) -> None:
    """Writes states, tags, links, parents and payload schemas of stored flags. Replaces only what has changed.

    New flags are off in the other ``environments``.
    """
    write_states(chain.from_iterable(_list_states(*each, environment, environments) for each in flags))
    write_tags(flags)
    write_links(flags, now)
    write_parents(flags)
    write_payload_schemas(flags, project)


# Flags -----------------------------------------------------------------------------------------------------


def create_flags(flags: Sequence[FlagPlan], *, project: str, caller: Caller, now: datetime) -> list[Numbered]:
    """Inserts new flags, with ``createdAt`` and ``archivedAt`` from the file."""
    numbered = list(zip(allocate_ids("projects_flag", len(flags)), flags, strict=True))
    columns = (
        "id", "name", "project_id", "type", "description", "stale", "impression_data", "created_at",
        "created_by_id", "archived_at",
    )  # fmt: skip
    copy_rows(
        "projects_flag",
        columns,
        (
            (
                flag_id,
                flag.name,
                project,
                after["type"],
                after["description"],
                after["stale"],
                after["impressionData"],
                flag.feature.get("createdAt") or now,
                caller.id,
                (flag.feature.get("archivedAt") or now) if after["archived"] else None,
            )
            for flag_id, flag in numbered
            for after in (_get_after(flag),)
        ),
    )
    return numbered


_UPDATE_FLAGS = """
UPDATE projects_flag f
   SET type = n.type, description = n.description, stale = n.stale, impression_data = n.impression_data,
       archived_at = CASE WHEN n.archived THEN coalesce(f.archived_at, %s) END
  FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::boolean[], %s::boolean[], %s::boolean[])
       AS n(id, type, description, stale, impression_data, archived)
 WHERE f.id = n.id
"""
METADATA = ("type", "description", "stale", "impressionData", "archived")


def update_flags(flags: Iterable[Numbered], now: datetime) -> None:
    changed = [(flag_id, _get_after(flag)) for flag_id, flag in flags if flag.differs(*METADATA)]
    if changed:
        columns = [[after[key] for _, after in changed] for key in METADATA]
        execute(_UPDATE_FLAGS, [now, [flag_id for flag_id, _ in changed], *columns])


# States ----------------------------------------------------------------------------------------------------


def _list_states(
    flag_id: int, flag: FlagPlan, environment: str, environments: Iterable[str]
) -> Iterator[StateChange]:
    old, new = _place_strategies(flag)
    before: Any = flag.before and {**flag.before, "strategies": old}
    yield StateChange(flag_id, environment, before, {**_get_after(flag), "strategies": new})
    if before is None:
        yield from (StateChange(flag_id, name, None, NOTHING) for name in environments if name != environment)


def _place_strategies(flag: FlagPlan) -> tuple[list[Any], list[Any]]:
    """The strategies before and after; replacements keep the ids. New ids ascend in order, to break ties."""
    if not flag.differs("strategies"):
        return [], []
    before, after = flag.pair_strategies()
    kept, orders = {each["id"] for each in before}, [each["sortOrder"] for each in after]
    if len(set(orders)) < len(orders):  # ids decide the order of these
        kept = set()
    fresh = iter(sorted(str(make_time_ordered_id()) for _ in after))
    return before, [each if each["id"] in kept else {**each, "id": next(fresh)} for each in after]


# Tags, links, parents, lifecycle ---------------------------------------------------------------------------


def _clear_changed(flags: Iterable[Numbered], part: str, table: str) -> list[tuple[int, list[Any]]]:
    """Deletes the rows of flags in which ``part`` changes. Returns the new values to insert, by flag id."""
    changed = [(flag_id, flag) for flag_id, flag in flags if flag.differs(part)]
    emptied = [flag_id for flag_id, flag in changed if flag.before and flag.before.get(part)]
    if emptied:
        execute(f"DELETE FROM {table} WHERE flag_id = ANY(%s)", [emptied])  # noqa: S608 - no user input
    return [(flag_id, after[part]) for flag_id, flag in changed if (after := _get_after(flag)).get(part)]


def write_tags(flags: Iterable[Numbered]) -> None:
    if desired := _clear_changed(flags, "tags", "projects_flagtag"):
        rows = ((flag_id, *tag) for flag_id, tags in desired for tag in tags)
        copy_rows("projects_flagtag", ("flag_id", "tag_type_id", "value"), rows)


def write_links(flags: Iterable[Numbered], now: datetime) -> None:
    if desired := _clear_changed(flags, "links", "projects_flaglink"):
        rows = (
            (identifier, flag_id, link["url"], link["title"], now)
            for flag_id, links in desired
            for identifier, link in zip(
                sorted(str(make_time_ordered_id()) for _ in links), links, strict=True
            )
        )
        copy_rows("projects_flaglink", ("id", "flag_id", "url", "title", "created_at"), rows)


def write_parents(flags: Iterable[Numbered]) -> None:
    """Writes dependencies. Insert all flags before, because a parent may be new too."""
    changed = [(flag_id, flag) for flag_id, flag in flags if flag.differs("parents")]
    parents = {
        flag_id: after for flag_id, flag in changed if (after := _get_after(flag)["parents"]) or flag.before
    }
    if parents:
        replace_parents(parents)


def write_payload_schemas(flags: Sequence[Numbered], project: str) -> None:
    """Also begins the check of the flags' payloads in all environments, at the end of the action."""
    changed = [(flag_id, flag) for flag_id, flag in flags if flag.differs("payloadSchema")]
    if not any("payloadSchema" in (document or ()) for _, f in changed for document in (f.before, f.after)):
        return
    execute(
        "DELETE FROM projects_payloadschema WHERE flag_id = ANY(%s)", [[flag_id for flag_id, _ in changed]]
    )
    new = [
        (flag_id, flag.name, after)
        for flag_id, flag in changed
        if "payloadSchema" in (after := _get_after(flag))
    ]
    rows = ((flag_id, _format_json(after["payloadSchema"])) for flag_id, _, after in new)
    copy_rows("projects_payloadschema", ("flag_id", "schema"), rows)
    check_at_end(project, [name for _, name, _ in new])


def end_archived_stage(flag_ids: Sequence[int]) -> None:
    if flag_ids:
        ended = "DELETE FROM projects_lifecyclestage WHERE stage = 'archived' AND flag_id = ANY(%s)"
        execute(ended, [list(flag_ids)])


def write_stages(created: Iterable[Numbered], archived: Sequence[int], now: datetime) -> None:
    """Writes lifecycle stages: "initial" and the file's stage for new flags, "archived" for archived ones."""
    end_archived_stage(archived)  # files assigned it to active flags, too
    stages: dict[tuple[int, str], datetime] = {}
    for flag_id, flag in created:
        stages[flag_id, "initial"] = flag.feature.get("createdAt") or now
        if (lifecycle := flag.feature.get("lifecycle")) and not flag.has_stage_of_archived:
            stages[flag_id, lifecycle["stage"]] = lifecycle["enteredStageAt"]
        if _get_after(flag)["archived"]:
            stages.setdefault((flag_id, "archived"), flag.feature.get("archivedAt") or now)
    for flag_id in archived:
        stages.setdefault((flag_id, "archived"), now)
    if stages:
        rows = ((flag_id, stage, at) for (flag_id, stage), at in stages.items())
        copy_rows("projects_lifecyclestage", ("flag_id", "stage", "entered_at"), rows)


def hash_document(document: dict[str, Any]) -> str:
    return hashlib.blake2b(orjson.dumps(document, option=orjson.OPT_SORT_KEYS), digest_size=12).hexdigest()


FIELDS = ("context", "note", "expectations")


def lock_saved_contexts(names: Iterable[str]) -> dict[str, SavedContext]:
    rows = SavedContext.objects.select_for_update().filter(name__in=list(names)).order_by("id")
    return {saved.name: saved for saved in rows}


def write_saved_contexts(plan: Plan, caller: Caller) -> tuple[list[Event], Document]:
    """Writes the contexts. Returns the audit events, and the data for undoing: ``{before, after}`` by name."""
    planned = {
        change.name: change for change in plan.saved_contexts.values() if change.action is not Action.SAME
    }
    stored = lock_saved_contexts(planned) if planned else {}
    events, written = [], {}
    for name, change in planned.items():
        saved = stored.get(name) or SavedContext(name=name, project_id=change.project, created_by=caller.name)
        before = {**change.before, "enforced_in": saved.enforced_in} if change.before else None
        saved.enforced_in = dict(change.enforced_in)
        events.append(_change(saved, change.after, caller))
        written[name] = {"before": before, "after": hash_document(_make_document(saved))}
    return events, written


def undo_saved_contexts(written: Document, caller: Caller) -> Iterator[Event]:
    """Reverts the written contexts. Raises Conflict if one has changed since, NoAccess."""
    stored = lock_saved_contexts(written) if written else {}
    for name, state in written.items():
        saved = stored.get(name)
        if saved is None or hash_document(_make_document(saved)) != state["after"]:
            raise Conflict(f"Saved context {name} was changed after this import, so it cannot be undone.")
        check_may_change(caller, saved.project_id)
        if state["before"] is not None:
            saved.enforced_in = state["before"].get("enforced_in", {})
            yield _change(saved, state["before"], caller)
        else:
            yield make_event(
                EventType.SAVED_CONTEXT_DELETED,
                saved,
                before=make_saved_context_document(saved),
                caller=caller,
            )
            saved.delete()


def _change(saved: SavedContext, values: Document, caller: Caller) -> Event:
    before = make_saved_context_document(saved) if saved.pk else None
    for field in FIELDS:
        setattr(saved, field, values[field])
    saved.updated_by, saved.updated_at = caller.name, timezone.now()
    saved.save()
    kind = EventType.SAVED_CONTEXT_UPDATED if before else EventType.SAVED_CONTEXT_CREATED
    return make_event(kind, saved, before=before, after=make_saved_context_document(saved), caller=caller)


def _make_document(saved: SavedContext) -> Document:
    return {field: getattr(saved, field) for field in FIELDS}
