"""Creates, changes, archives and deletes release templates."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.lengths import length_problems
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import InvalidOperation, NotFound, check_problems
from groups.access import Caller, Permission
from projects.project_scope import check_scope, lock_scope, name_is_free
from releases.models import Milestone, ReleaseTemplate
from releases.models.plans import make_ulid
from releases.templates.queries import access_template, find_by_id, template_document
from releases.templates.rules import plan_milestones

IN_PROJECT = Permission.UPDATE_PROJECT_RELEASE_TEMPLATE


@transactional
def create_template(
    values: Mapping[str, Any], *, project_id: str | None = None, caller: Caller
) -> ReleaseTemplate:
    """Raises NotFound, NoAccess, NameExists, ValidationError."""
    check_scope(caller, Permission.RELEASE_PLAN_TEMPLATE_CREATE, IN_PROJECT, project_id)
    lock_scope(project_id)
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
    lock_scope(project_id)
    return get_or_404(
        ReleaseTemplate.objects.select_for_update(of=("self",)), f"Release template {key} not found.", pk=key
    )


def _record(kind: EventType, template: ReleaseTemplate, caller: Caller, **documents: Any) -> None:
    event = Event(type=kind, project=template.project_id, subject=template.name, **documents)
    record(event, actor=caller)
