"""Permanently deletes a project, for the API, the console and the admin site.

Deletion runs in one transaction under the project's strongest lock, with a fixed number of queries. API
tokens that also name other projects keep those; no token gains access to anything.
"""

from collections.abc import Iterable
from typing import Any

from django.db import transaction

from flagadmin.core.audit.record import Event, EventType, record, record_all
from flagadmin.core.db.transactions import consistent_reads, transactional
from flagadmin.core.edit_conflicts import Expected, check_expected, hash_document
from groups.access import Caller, Permission
from groups.models import ApiToken, ApiTokenProject, Grant
from projects.access import access_project, access_project_for_update
from projects.deletion.kept_names import PROJECT, end_names
from projects.deletion.plan import (
    Scopes,
    find_blockers,
    find_saved_contexts,
    is_own,
    plan_project_deletion,
    read_scopes,
)
from projects.export import project_backup
from projects.flags.archive.actions import remove_flag_rows, remove_rows
from projects.models import ContextField, Flag, Project, Segment
from projects.projects.actions import make_active_flags_error
from projects.projects.queries import list_project_environment_documents, make_settings_document
from projects.segments.actions import event_document
from projects.tokens.actions import document as token_document


@transactional
def delete_project(project_id: str, *, expected: Expected = None, caller: Caller) -> None:
    """Deletes a project with its archived flags and everything else that belongs only to it. Events stay.

    ``expected`` refers to the deletion plan or to the project's settings. Raises NotFound, NoAccess,
    EditConflict, and InvalidOperation for the default project, while flags are active (naming them), or while
    flags of other projects depend on this one (naming them).
    """
    project = access_project_for_update(
        caller, project_id, Permission.DELETE_PROJECT, for_deletion=True, archived=True
    )
    if expected is not None and hash_document(make_settings_document(project)) not in expected:
        plan = plan_project_deletion(project_id, caller=caller)
        changed = f"{project_id} has changed since you opened this page. Nothing was deleted."
        check_expected(expected, plan.document, f"{changed} This is how it is now.")
    if errors := find_blockers(project).errors:
        raise errors[0]
    before = make_removed_project_document(project)
    remove_flag_rows(Flag.objects.archived().filter(project=project), caller=caller)
    # Only code without the project's lock can have revived a flag since the check. The flag has stayed, so the project,
    # which its foreign key needs, stays too.
    if revived := list(Flag.objects.filter(project=project).order_by("name").values_list("name", flat=True)):
        raise make_active_flags_error(project, revived, "deleted")
    _remove_tokens(project, caller)
    remove_rows(Project.objects.filter(pk=project.pk))
    record(
        Event(type=EventType.PROJECT_DELETED, project=project.pk, subject=project.pk, before=before),
        actor=caller,
    )
    end_names(PROJECT, [project.pk], caller=caller)


def make_removed_project_document(project: Project) -> dict[str, Any]:
    """The project in the form of its audit event: settings, environments, access, and its other parts."""
    return make_settings_document(project) | {
        "environments": list_project_environment_documents(project),
        "access": access_documents(project),
        "segments": [event_document(s) for s in Segment.objects.filter(project=project)],
        "contextFields": [f.document() for f in ContextField.objects.filter(project=project)],
        "savedContexts": list(find_saved_contexts(project).values("name", "context", "note", "expectations")),
    }


def access_documents(project: Project) -> list[dict[str, Any]]:
    """The roles granted in the project, as names: ``{role, user}`` or ``{role, group}``, ordered by role."""
    grants = Grant.objects.filter(project=project).order_by("role_id", "id")
    rows = grants.values_list("role__name", "user__username", "group__name")
    return [
        {"role": role, "user": user} if user is not None else {"role": role, "group": group}
        for role, user, group in rows
    ]


def _remove_tokens(project: Project, caller: Caller) -> None:
    """Deletes tokens for this project alone and removes it from the scope of all others.

    Tokens are locked first, so that concurrent deletions of two projects see each other's changes.
    """
    named = ApiTokenProject.objects.filter(project=project).values("token_id")
    tokens = list(ApiToken.objects.select_for_update().filter(pk__in=named).order_by("id"))
    scopes = read_scopes(tokens)
    own = [token for token in tokens if is_own(token, project, scopes)]
    shared = [token for token in tokens if not is_own(token, project, scopes)]
    ApiTokenProject.objects.filter(project=project).delete()
    remove_rows(ApiToken.objects.filter(pk__in=[token.pk for token in own]))
    record_all(
        [*_make_deletion_events(own, project, scopes), *_make_narrowing_events(shared, project, scopes)],
        actor=caller,
    )


def _make_deletion_events(tokens: list[ApiToken], project: Project, scopes: Scopes) -> Iterable[Event]:
    for token in tokens:
        before = token_document(token, scopes[token.pk])
        yield _make_token_event(EventType.API_TOKEN_DELETED, token, project, before=before)


def _make_narrowing_events(tokens: list[ApiToken], project: Project, scopes: Scopes) -> Iterable[Event]:
    for token in tokens:
        before = token_document(token, scopes[token.pk])
        after = token_document(token, [name for name in scopes[token.pk] if name != project.pk])
        yield _make_token_event(EventType.API_TOKEN_UPDATED, token, project, before=before, after=after)


def _make_token_event(
    kind: EventType, token: ApiToken, project: Project, *, before: Any, after: Any = None
) -> Event:
    return Event(
        type=kind,
        project=project.pk,
        environment=token.environment_id,
        subject=token.name,
        before=before,
        after=after,
    )


def back_up_project(project_id: str, *, caller: Caller) -> dict[str, Any]:
    """Exports the project: one document per environment, including archived flags, all read at one moment.

    Raises NotFound.
    """
    with consistent_reads():
        project = access_project(caller, project_id)
        documents = project_backup(project.pk)
    with transaction.atomic():
        record(Event(type=EventType.FEATURES_EXPORTED, project=project.pk), actor=caller)
    return documents
