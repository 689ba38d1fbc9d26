"""Creates, changes, archives and deletes release templates.

Validates the milestones of release templates and plans.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.change_options import get_change_options
from flagadmin.core.db.lookups import get_or_404, length_problems
from flagadmin.core.db.transactions import transactional
from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import InvalidOperation, NotFound, Problem, check_problems
from groups.access import Caller, Permission
from projects.models import Flag
from projects.project_scope import check_scope, lock_scope, name_is_free
from projects.strategies.rules import StrategyDefaults, StrategyPlanner
from releases.models import Milestone, ReleaseTemplate
from releases.models.plans import make_ulid
from releases.templates.queries import access_template, find_by_id, template_document

IN_PROJECT = Permission.UPDATE_PROJECT_RELEASE_TEMPLATE


@transactional
def create_template(
    values: Mapping[str, Any], *, project_id: str | None = None, caller: Caller
) -> ReleaseTemplate:
    """Raises NotFound, NoAccess, NameExists, ValidationError."""
    check_scope(caller, Permission.RELEASE_PLAN_TEMPLATE_CREATE, IN_PROJECT, project_id)
    lock_scope(project_id, caller=caller)
    template = ReleaseTemplate(project_id=project_id, author=caller.user)
    _write(template, values)
    _record(EventType.RELEASE_PLAN_TEMPLATE_CREATED, template, caller, after=read_document(template))
    return template


@transactional
def update_template(
    key: str,
    values: Mapping[str, Any],
    *,
    project_id: str | None = None,
    expected: Expected = None,
    caller: Caller,
) -> ReleaseTemplate:
    """Changes the given members. Milestones and strategies sent with their id keep it. Plans made from it stay
    unchanged.

    Raises NotFound, NoAccess, EditConflict, NameExists, ValidationError.
    """
    template = _access_for_update(key, project_id, Permission.RELEASE_PLAN_TEMPLATE_UPDATE, caller)
    before = read_document(template)
    check_expected(expected, before)
    _write(template, {**before, **values})
    after = read_document(template)
    if after != before:
        _record(EventType.RELEASE_PLAN_TEMPLATE_UPDATED, template, caller, before=before, after=after)
    return template


Edit = Callable[[list[Document]], None]
"""Changes the documents of milestones in place. Raises NotFound."""


@transactional
def edit_milestones(
    key: str, edit: Edit, *, project_id: str | None = None, caller: Caller
) -> ReleaseTemplate:
    """Raises the errors of `update_template` and `edit`."""
    template = _access_for_update(key, project_id, Permission.RELEASE_PLAN_TEMPLATE_UPDATE, caller)
    milestones = read_document(template)["milestones"]
    edit(milestones)
    return update_template(key, {"milestones": milestones}, project_id=project_id, caller=caller)


def set_strategy(
    milestone: Milestone,
    key: str,
    values: Mapping[str, Any] | None,
    *,
    expected: Expected = None,
    caller: Caller,
) -> None:
    """Adds a strategy to the milestone of a template (``key`` is ""), changes one or, with None, removes it.

    Raises NotFound, NoAccess, EditConflict, ValidationError.
    """
    if milestone.template is None:
        raise NotFound(f"Milestone {milestone.pk} not found.")

    def edit(milestones: list[Document]) -> None:
        strategies = find_by_id(milestones, milestone.pk, "Milestone")["strategies"]
        stored = find_by_id(strategies, key, "Strategy") if key else None
        if stored is not None:
            row = Milestone.objects.get(pk=milestone.pk)
            check_expected(expected, find_by_id(row.strategies, key, "Strategy"))
        if values is None:
            strategies.remove(stored)
            return
        document = {**values, "strategyName": values["name"], "id": key}
        strategies[:] = [document if each is stored else each for each in strategies]
        strategies += [] if key else [document]

    edit_milestones(milestone.template.pk, edit, project_id=milestone.template.project_id, caller=caller)


@transactional
def archive_template(key: str, *, project_id: str | None = None, caller: Caller) -> None:
    """Archives it, so that no more plans are made from it. Raises NotFound, NoAccess, InvalidOperation."""
    template = _access_for_update(key, project_id, Permission.RELEASE_PLAN_TEMPLATE_UPDATE, caller)
    if template.archived_at is not None:
        raise InvalidOperation(f"Release template {template.name} is archived already.")
    template.archived_at = timezone.now()
    template.save(update_fields=["archived_at"])
    _record(EventType.RELEASE_PLAN_TEMPLATE_ARCHIVED, template, caller)


@transactional
def delete_template(
    key: str, *, project_id: str | None = None, expected: Expected = None, caller: Caller
) -> None:
    """Deletes it. Plans made from it stay. Raises NotFound, NoAccess, EditConflict."""
    template = _access_for_update(key, project_id, Permission.RELEASE_PLAN_TEMPLATE_DELETE, caller)
    before = read_document(template)
    check_expected(expected, before)
    template.delete()
    _record(EventType.RELEASE_PLAN_TEMPLATE_DELETED, template, caller, before=before)


def read_document(template: ReleaseTemplate) -> Document:
    """Reads the stored document, in one query."""
    return template_document(ReleaseTemplate.objects.prefetch_related("milestones").get(pk=template.pk))


def insert_milestones(owner: Mapping[str, Any], milestones: Sequence[Document]) -> list[Milestone]:
    """Inserts validated milestones of a template or plan, whose earlier ones have been deleted."""
    ids = {milestone["id"] for milestone in milestones}
    foreign = set(Milestone.objects.filter(pk__in=ids).values_list("pk", flat=True))
    rows = [
        Milestone(
            **owner,
            id=make_ulid() if milestone["id"] in foreign else milestone["id"],
            name=milestone["name"],
            place=place,
            strategies=milestone["strategies"],
            transition=milestone["transition"],
        )
        for place, milestone in enumerate(milestones)
    ]
    return Milestone.objects.bulk_create(rows)


def _write(template: ReleaseTemplate, values: Mapping[str, Any]) -> None:
    milestones, problems = plan_milestones(values.get("milestones") or [], project_id=template.project_id)
    template.name, template.description = values["name"], values.get("description") or ""
    check_problems([*length_problems(template, name="name"), *problems])
    with name_is_free(f"Another release template is named {template.name}."):
        template.save()
    Milestone.objects.filter(template=template).delete()
    insert_milestones({"template": template}, milestones)


def _access_for_update(
    key: str, project_id: str | None, permission: Permission, caller: Caller
) -> ReleaseTemplate:
    access_template(caller, key, project_id)
    check_scope(caller, permission, IN_PROJECT, project_id)
    lock_scope(project_id, caller=caller)
    return get_or_404(
        ReleaseTemplate.objects.select_for_update(of=("self",)), f"Release template {key} not found.", pk=key
    )


def _record(kind: EventType, template: ReleaseTemplate, caller: Caller, **documents: Any) -> None:
    event = Event(type=kind, project=template.project_id, subject=template.name, **documents)
    record(event, actor=caller)


MAX_MILESTONES, MAX_STRATEGIES = 30, 30
MAX_MINUTES = 366 * 24 * 60
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d")


def plan_milestones(
    milestones: Sequence[Mapping[str, Any]], *, project_id: str | None, flag: Flag | None = None
) -> tuple[list[Document], list[Problem]]:
    """The milestones in stored form, ``{id, name, strategies, transition}``, and their problems.

    For a flag, completes strategies as if they were added to it.
    """
    planned = [
        _plan_milestone(milestone, f"milestones[{index}]", project_id, flag)
        for index, milestone in enumerate(milestones)
    ]
    problems = [problem for _, milestone_problems in planned for problem in milestone_problems]
    ids: set[str] = set()
    for document, _ in planned:
        document["id"] = make_ulid() if document["id"] in ids else document["id"]
        ids.add(document["id"])
    if not 1 <= len(milestones) <= MAX_MILESTONES:
        text = f"must have 1 to {MAX_MILESTONES} milestones, not {len(milestones)}"
        problems.append(Problem("milestones", text))
    return [document for document, _ in planned], problems


def _plan_milestone(
    milestone: Mapping[str, Any], path: str, project_id: str | None, flag: Flag | None
) -> tuple[Document, list[Problem]]:
    strategies, problems = plan_strategies(
        milestone.get("strategies") or [], f"{path}.strategies", project_id=project_id, flag=flag
    )
    transition = milestone.get("transitionCondition")
    problems += length_problems(Milestone(name=milestone["name"]), name=f"{path}.name")
    problems += transition_problems(transition, f"{path}.transitionCondition")
    document = {
        "id": milestone.get("id") or make_ulid(),
        "name": milestone["name"],
        "strategies": strategies,
        "transition": tidy_transition(transition),
    }
    return document, problems


def plan_strategies(
    strategies: Sequence[Mapping[str, Any]], path: str, *, project_id: str | None, flag: Flag | None
) -> tuple[list[Document], list[Problem]]:
    """The strategies of a milestone in stored form, and their problems."""
    planner = MilestonePlanner(project_id, flag)
    documents: list[Document] = []
    problems: list[Problem] = []
    if len(strategies) > MAX_STRATEGIES:
        problems.append(
            Problem(path, f"must have at most {MAX_STRATEGIES} strategies, not {len(strategies)}")
        )
    for index, values in enumerate(strategies):
        document, strategy_problems = planner.plan(values, f"{path}[{index}]", index)
        documents.append(document)
        problems += strategy_problems
    return documents, problems


class MilestonePlanner:
    """Plans strategies of milestones. For a flag, completes them as if they were added to it."""

    def __init__(self, project_id: str | None, flag: Flag | None) -> None:
        self._planner, self._completes = StrategyPlanner(project_id or ""), flag is not None
        keeps = get_change_options().comes_from_elsewhere
        of_flag = (flag.name, flag.project.default_stickiness, keeps) if flag else ("",)
        self._defaults = StrategyDefaults(*of_flag)

    def plan(self, values: Mapping[str, Any], path: str, place: int) -> tuple[Document, list[Problem]]:
        """The strategy in stored form, and its problems."""
        named = {**values, "name": values.get("strategyName") or values.get("name") or ""}
        planned, problems = self._planner.plan(named, self._defaults, path)
        document: Document = {**planned, "id": values.get("id") or make_ulid(), "sortOrder": place}
        if not self._completes:  # missing values are completed for a plan's flag
            texts = values.get("parameters") or {}
            document["parameters"] = {
                key: text for key, text in document["parameters"].items() if texts.get(key) not in (None, "")
            }
        return document, problems


def transition_problems(transition: Mapping[str, Any] | None, path: str) -> Iterator[Problem]:
    """Yields the problems of ``{intervalMinutes?, window?: {zone, days, from, to}}``. None: by hand."""
    if transition is None:
        return
    minutes = transition.get("intervalMinutes")
    if minutes is not None and not 1 <= minutes <= MAX_MINUTES:
        yield Problem(f"{path}.intervalMinutes", f"must be 1 to {MAX_MINUTES}, not {minutes}")
    window = transition.get("window")
    if window is None:
        if minutes is None:
            yield Problem(path, "needs intervalMinutes, window or both")
        return
    yield from _window_problems(window, f"{path}.window")


def _window_problems(window: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if not is_zone(window["zone"]):
        yield Problem(f"{path}.zone", f"must be a time zone such as Europe/Oslo, not {window['zone']}")
    days = window["days"]
    if not days or not set(days) <= set(range(1, 8)):
        yield Problem(f"{path}.days", "must be days of the week, 1 (Monday) to 7 (Sunday)")
    times = window["from"], window["to"]
    for name, text in zip(("from", "to"), times, strict=True):
        if not _TIME.fullmatch(text):
            yield Problem(f"{path}.{name}", f"must be a time such as 09:00, not {text}")
            return
    if times[0] >= times[1]:
        yield Problem(f"{path}.to", f"must be later than {times[0]}")


def is_zone(name: str) -> bool:
    return name in available_timezones()


def get_zone(window: Mapping[str, Any]) -> ZoneInfo:
    return ZoneInfo(window["zone"])


def tidy_transition(transition: Mapping[str, Any] | None) -> Document | None:
    """The stored form, without null members, and with days in their order."""
    if not transition:
        return None
    tidied = {key: value for key, value in transition.items() if value is not None}
    if window := tidied.get("window"):
        tidied["window"] = {**window, "days": sorted(set(window["days"]))}
    return tidied
