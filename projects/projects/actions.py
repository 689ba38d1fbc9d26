"""Creates, changes, archives and revives projects. ``projects.deletion`` deletes them.

Validates a project's id, name, settings and naming pattern for flags.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from django.utils.text import slugify

from flagadmin.core.audit.record import Event, EventType, read_transaction_time, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import InvalidOperation, NameExists, Problem, check_problems, choices, clip
from groups.access import DEFAULT_PROJECT, Caller
from groups.models import Grant, User
from groups.permissions import BuiltIn, Permission
from playground.engine import operators
from projects.access import (
    access_flag,
    access_project,
    access_project_for_update,
    describe_unknown_environment,
)
from projects.flags.name_rules import find_pattern_problem
from projects.models import (
    ContextField,
    Environment,
    FavoriteFlag,
    FavoriteProject,
    Flag,
    Project,
    ProjectEnvironment,
)
from projects.project_scope import find_first_permission, name_is_free
from projects.projects.environments import SETTINGS_PERMISSIONS
from projects.projects.links import comment_link_problems, link_template_problems
from projects.projects.queries import make_settings_document
from projects.rules import name_problems
from projects.tokens.pending import activate_tokens

# Accepted in every project, in addition to its context fields.
STICKINESS = frozenset({"default", "random", "userId", "sessionId"})
MAX_GENERATED_ID_LENGTH = 90


@transactional
def create_project(
    values: Mapping[str, Any], *, environments: Sequence[str] | None = None, caller: Caller
) -> Project:
    """Creates a project from ``values`` by model field; without ``id``, one is derived from the name.

    ``environments`` None means all enabled environments. The caller becomes the project's Owner. Raises
    NoAccess, ValidationError, NameExists.
    """
    caller.check(Permission.CREATE_PROJECT)
    project = Project(**{"id": "", **values})
    project.id = project.id or free_id(project.name)
    names, problems = _read_environments(environments)
    check_problems([*problems_of(project), *problems])
    taken = f"A project with the id {project.pk} already exists."
    if project.pk in caller.rights.hidden:  # perhaps deleted: its records would become those of the new one
        raise NameExists(taken)
    with name_is_free(taken):
        project.save(force_insert=True)
    project.refresh_from_db(fields=["mode"])  # private if the id was a deleted private project's
    ProjectEnvironment.objects.bulk_create(
        ProjectEnvironment(project=project, environment_id=name) for name in names
    )
    if caller.user is not None:
        Grant.objects.create(role_id=BuiltIn.OWNER, project=project, user=caller.user)
    after = make_settings_document(project) | {"environments": names}
    _record(EventType.PROJECT_CREATED, project, caller, after=after)
    activate_tokens(caller=caller)
    return project


def _read_environments(names: Sequence[str] | None) -> tuple[list[str], list[Problem]]:
    rows = Environment.objects.all()
    if names is None:
        return list(rows.filter(enabled=True).values_list("name", flat=True)), []
    known = set(rows.values_list("name", flat=True))
    problems = [
        Problem(f"environments[{index}]", describe_unknown_environment(name))
        for index, name in enumerate(names)
        if name not in known
    ]
    if not names:
        problems.append(Problem("environments", f"at least one is needed. Available: {choices(known)}"))
    return sorted(set(names) & known), problems


def free_id(name: str) -> str:
    """An id derived from a name, numbered if the plain one is taken: ``my-project``, ``my-project-1``."""
    plain = slugify(name)[:MAX_GENERATED_ID_LENGTH].strip("-_") or "project"
    used_ids = set(Project.objects.filter(id__startswith=plain).values_list("id", flat=True))
    used_ids |= RESERVED_PROJECT_IDS
    if plain not in used_ids:
        return plain
    return next(
        project_id for n in range(1, len(used_ids) + 2) if (project_id := f"{plain}-{n}") not in used_ids
    )


def check_id_is_free(project_id: str) -> None:
    """Checks that the id is valid and not taken, not even by an archived project.

    Raises ValidationError, NameExists.
    """
    check_problems([p for p in problems_of(Project(id=project_id, name=project_id)) if p.path == "id"])
    if Project.objects.filter(pk=project_id).exists():
        raise NameExists(f"A project with the id {project_id} already exists.")


@transactional
def update_project(
    project_id: str, changes: Mapping[str, Any], *, expected: Expected = None, caller: Caller
) -> Project:
    """Updates the given model fields. Raises NotFound, NoAccess, EditConflict, ValidationError."""
    permission = find_first_permission(caller, project_id, *SETTINGS_PERMISSIONS)
    project = access_project_for_update(caller, project_id, permission)
    before = make_settings_document(project)
    check_expected(expected, before)
    for key, value in changes.items():
        setattr(project, key, value)
    check_problems(problems_of(project))
    project.save()
    after = make_settings_document(project)
    if after != before:
        _record(EventType.PROJECT_UPDATED, project, caller, before=before, after=after)
    return project


def check_may_update(caller: Caller, project_id: str) -> None:
    """Checks that the caller may change the project's settings. Raises NotFound, NoAccess."""
    access_project(caller, project_id)
    caller.check_any(SETTINGS_PERMISSIONS, project=project_id)


@transactional
def archive_project(project_id: str, *, caller: Caller) -> Project:
    """Archives a project, which keeps its id. Archiving an archived project changes nothing.

    Raises NotFound, NoAccess, and InvalidOperation for the default project or naming the flags that are
    active.
    """
    project = access_project_for_update(caller, project_id, Permission.DELETE_PROJECT, archived=True)
    check_not_default(project, "archived")
    check_no_active_flags(project, "archived")
    if project.archived_at is None:
        project.archived_at = read_transaction_time()
        project.save(update_fields=["archived_at"])
        _record(EventType.PROJECT_ARCHIVED, project, caller)
    return project


@transactional
def revive_project(project_id: str, *, caller: Caller) -> Project:
    """Revives an archived project. Its flags stay archived. Raises NotFound, NoAccess."""
    permission = find_first_permission(caller, project_id, *SETTINGS_PERMISSIONS)
    project = access_project_for_update(caller, project_id, permission, archived=True)
    if project.archived_at is not None:
        project.archived_at = None
        project.save(update_fields=["archived_at"])
        _record(EventType.PROJECT_REVIVED, project, caller)
        activate_tokens(caller=caller)
    return project


def check_not_default(project: Project, what: str) -> None:
    """Raises InvalidOperation for the default project, which must always exist."""
    if project.pk == DEFAULT_PROJECT:
        raise InvalidOperation(f"The default project cannot be {what}.")


def check_no_active_flags(project: Project, what: str) -> None:
    """Raises InvalidOperation naming the active flags of the project, which must be locked."""
    active = Flag.objects.active().filter(project=project).order_by("name")
    if names := list(active.values_list("name", flat=True)):
        raise make_active_flags_error(project, names, what)


def make_active_flags_error(project: Project, names: Sequence[str], what: str) -> InvalidOperation:
    count, them = ("1 flag is", "it") if len(names) == 1 else (f"{len(names)} flags are", "them")
    return InvalidOperation(
        f"{count} still active in project {project.pk}: {choices(names)}. "
        f"Archive {them} first; the project can be {what} after that.",
        details=[Problem(name, "is still active") for name in names],
    )


def problems_of(project: Project) -> list[Problem]:
    fields = ContextField.objects.usable_in(project.pk).values_list("name", flat=True)
    return list(project_problems(project, stickiness=STICKINESS | set(fields)))


def _record(
    kind: EventType, project: Project, caller: Caller, *, before: Any = None, after: Any = None
) -> None:
    record(Event(type=kind, project=project.pk, subject=project.pk, before=before, after=after), actor=caller)


@transactional
def set_flag_favorite(project_id: str, name: str, favorite: bool, *, caller: Caller) -> None:
    """Marks or unmarks a flag as the caller's favorite. Repeating it is not an error.

    Raises NotFound, and InvalidOperation for a token that belongs to no user.
    """
    flag = access_flag(caller, project_id, name, archived=False)
    user = _find_person(caller)
    rows = FavoriteFlag.objects.filter(user=user, flag=flag)
    if favorite == rows.exists():
        return
    if favorite:
        FavoriteFlag.objects.bulk_create([FavoriteFlag(user=user, flag=flag)], ignore_conflicts=True)
    else:
        rows.delete()
    kind = EventType.FEATURE_FAVORITED if favorite else EventType.FEATURE_UNFAVORITED
    record(Event(type=kind, project=project_id, feature=name), actor=caller)


@transactional
def set_project_favorite(project_id: str, favorite: bool, *, caller: Caller) -> None:
    """Marks or unmarks a project as the caller's favorite. Repeating it is not an error.

    Raises NotFound, and InvalidOperation for a token that belongs to no user.
    """
    project = access_project(caller, project_id)
    user = _find_person(caller)
    rows = FavoriteProject.objects.filter(user=user, project=project)
    if favorite == rows.exists():
        return
    if favorite:
        FavoriteProject.objects.bulk_create(
            [FavoriteProject(user=user, project=project)], ignore_conflicts=True
        )
    else:
        rows.delete()
    kind = EventType.PROJECT_FAVORITED if favorite else EventType.PROJECT_UNFAVORITED
    record(Event(type=kind, project=project_id), actor=caller)


def _find_person(caller: Caller) -> User:
    if caller.user is None:
        raise InvalidOperation("This token belongs to no user, so it has no favorites.")
    return caller.user


MAX_PROJECT_NAME_LENGTH = 255
MAX_FLAGS = 2**31 - 1
# Used in place of a project id in URLs below /api/admin/projects/ and /projects/.
RESERVED_PROJECT_IDS = frozenset({"archive", "revive", "roles", "validate", "new"})


def project_problems(project: Project, *, stickiness: Collection[str]) -> Iterator[Problem]:
    """Problems with a project's settings. ``stickiness`` holds the valid names for the default stickiness."""
    yield from name_problems(project.pk, "id", reserved=RESERVED_PROJECT_IDS)
    if not project.name.strip():
        yield Problem("name", "a name is required")
    elif len(project.name) > MAX_PROJECT_NAME_LENGTH:
        yield Problem("name", f"must have at most {MAX_PROJECT_NAME_LENGTH} characters")
    if project.default_stickiness not in stickiness:
        known = choices(stickiness)
        yield Problem(
            "defaultStickiness", f"context field {project.default_stickiness} not found. Available: {known}"
        )
    if project.flag_limit is not None and not 1 <= project.flag_limit <= MAX_FLAGS:
        yield Problem("featureLimit", f"must be from 1 to {MAX_FLAGS}, or null for no limit")
    yield from naming_problems(project)
    yield from comment_link_problems(project.comment_links)
    yield from link_template_problems(project.link_templates)


def naming_problems(project: Project) -> Iterator[Problem]:
    """The pattern must be valid for RE2, which runs in linear time; the example must match the pattern."""
    pattern, example = project.naming_pattern, project.naming_example
    if pattern and (fault := operators.find_fault(pattern)):
        yield Problem("featureNaming.pattern", f"{clip(pattern)} {fault}")
    elif pattern and example and find_pattern_problem(example, project):
        yield Problem("featureNaming.example", f"{example} does not match the pattern {pattern}")
    elif not pattern and example:
        yield Problem("featureNaming.example", "an example requires a pattern")
    elif not pattern and project.naming_description:
        yield Problem("featureNaming.description", "a description requires a pattern")
