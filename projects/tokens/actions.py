"""Creates, changes and revokes API tokens for SDKs and for the admin API.

The scope of a token is explicit: a list of projects, or all projects. It is never widened. Scopes are written
while their projects are locked, so that none of those projects can be deleted at the same time.

An automation consists of everything that a program needs to change flags in one environment: a service account, a role
with permissions limited to the environment, its grant in each project, and a token that acts as the account.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Any

from django.conf import settings

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import NoAccess, NotFound, Problem, check_problems, join_words
from flagadmin.core.http.responses import iso
from groups.access import Caller, Permission
from groups.models import ApiToken, ApiTokenProject, Role
from groups.models.roles import HeldPermission
from groups.people.actions import NewAccount, create_account
from groups.people.personal_tokens import create_personal_token
from groups.roles.actions import create_role
from groups.tokens import check_expiry, check_not_expired, hash_secret, make_secret, make_visible_prefix
from projects.access import (
    access_project,
    access_project_for_update,
    describe_unknown_environment,
    describe_unknown_project,
    lock_projects,
)
from projects.members.actions import Holders, add_roles
from projects.models import Environment, Project
from projects.tokens.access import access_token_for_update, check_any_kind, filter_by_key, find_permission

Kind = ApiToken.Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """The values of a token to be created.

    ``projects`` None means all projects, present and future. ``type_name`` is the client's name for the kind, for
    example "client" for backend.
    """

    name: str
    kind: str
    type_name: str = ""
    projects: tuple[str, ...] | None
    environment: str | None = None
    expires_at: datetime | None = None
    alias: str | None = None


def document(token: ApiToken, projects: Iterable[str]) -> dict[str, Any]:
    """A token as recorded in its audit events, without its secret."""
    scope = token.pending_scope or {
        "environment": token.environment_id or "*",
        "projects": ["*"] if token.all_projects else sorted(projects),
    }
    recorded = {
        "id": token.pk,
        "tokenName": token.name,
        "type": token.kind,
        **scope,
        "alias": token.alias,
        "expiresAt": iso(token.expires_at),
        "prefix": token.prefix,
    }
    return recorded | {"pending": True} if token.is_pending else recorded


@transactional
def create_token(new: NewToken, *, caller: Caller, credential: str | None = None) -> tuple[ApiToken, str]:
    """Creates a token and returns it with its secret, which is not stored.

    A caller with the same `credential` can read the secret again (`groups.tokens.recover_secret`). Raises NoAccess,
    ValidationError.
    """
    check_any_kind(caller, "CREATE")
    caller.check(find_permission("CREATE", new.kind))
    check_not_expired(new.expires_at)
    if new.kind == Kind.ADMIN:
        check_expiry(caller, new.expires_at)
    locked = lock_projects(caller, new.projects or ())
    problems = [*_find_kind_problems(new), *_find_project_problems(new, caller, locked)]
    check_problems(problems)
    return store_token(new, caller=caller, secret=_make_secret(new, credential))


@transactional
def create_project_token(
    project_id: str, new: NewToken, *, caller: Caller, credential: str | None = None
) -> tuple[ApiToken, str]:
    """Creates a token for this project alone, like `create_token`; other values of `new.projects` are invalid.

    Raises NotFound, NoAccess, ValidationError.
    """
    access_project_for_update(caller, project_id, Permission.CREATE_PROJECT_API_TOKEN)
    check_not_expired(new.expires_at)
    problems = list(_find_kind_problems(new))
    if new.kind == Kind.ADMIN:
        problems.append(Problem("type", "a project's token is of type backend or frontend"))
    if new.projects != (project_id,):
        problems.append(Problem("projects", f"a token created here is for project {project_id} only"))
    check_problems(problems)
    return store_token(new, caller=caller, secret=_make_secret(new, credential))


@transactional
def update_token(key: str, *, expires_at: datetime | None, caller: Caller) -> ApiToken:
    """Changes when the token expires (None: never). Raises NotFound, NoAccess."""
    token = access_token_for_update(caller, key, "UPDATE")
    _check_production(token, caller)
    if token.kind == Kind.ADMIN:
        check_expiry(caller, expires_at)
    projects = read_scope(token)
    before = document(token, projects)
    token.expires_at = expires_at
    token.save(update_fields=["expires_at"])
    record_token(EventType.API_TOKEN_UPDATED, projects, before, document(token, projects), caller=caller)
    return token


@transactional
def delete_token(key: str, *, caller: Caller) -> None:
    """Revokes a token. Raises NotFound, NoAccess."""
    token = access_token_for_update(caller, key, "DELETE")
    _check_production(token, caller)
    _delete(token, caller=caller)


@transactional
def delete_project_token(project_id: str, key: str, *, caller: Caller) -> None:
    """Revokes a token of the project.

    A token for several projects needs the permission in each of them. Raises NotFound, NoAccess.
    """
    access_project(caller, project_id)
    caller.check(Permission.DELETE_PROJECT_API_TOKEN, project=project_id)
    token = access_project_token_for_update(project_id, key)
    for project in read_scope(token):
        if not caller.can(Permission.DELETE_PROJECT_API_TOKEN, project=project):
            raise NoAccess(
                "This token also gives access to other projects, so it cannot be revoked in this one."
            )
    _check_production(token, caller)
    _delete(token, caller=caller)


def _check_production(token: ApiToken, caller: Caller) -> None:
    """Raises NoAccess if only owners may end production tokens, which stops the SDKs that use them.

    A token for all projects needs the permission in all of them.
    """
    is_production = token.environment is not None and token.environment.type == "production"
    if settings.GUARD_PRODUCTION_TOKENS and is_production:
        for project in read_scope(token) or (None,):
            caller.check(Permission.UPDATE_PROJECT, project=project)


def read_scope(token: ApiToken) -> list[str]:
    """The ids of the projects in the token's scope; empty for a token for all projects."""
    return sorted(token.scopes.values_list("project_id", flat=True))


def _make_secret(new: NewToken, credential: str | None) -> str:
    projects = None if new.projects is None else sorted(set(new.projects))
    return make_secret(new.kind, projects=projects, environment=new.environment, credential=credential)


def store_token(
    new: NewToken, *, caller: Caller, secret: str, digest: str | None = None, pending: bool = False
) -> tuple[ApiToken, str]:
    """Stores a validated token and records the event.

    A pending one keeps its scope in ``pending_scope`` and gives no access. With the ``digest`` of an unknown secret,
    ``secret`` is its visible start.
    """
    projects = sorted(set(new.projects or ()))
    token = ApiToken(
        kind=new.kind,
        type_name=new.type_name,
        name=new.name,
        secret_hash=digest or hash_secret(secret),
        prefix=secret if digest else make_visible_prefix(secret),
        alias=new.alias,
        created_by=caller.name,
        expires_at=new.expires_at,
    )
    if pending:
        token.pending_scope = make_scope_document(new)
        token.save()
    else:
        give_scope(token, make_scope_document(new))
    usable_in = [] if pending else projects
    record_token(EventType.API_TOKEN_CREATED, usable_in, None, document(token, projects), caller=caller)
    return token, secret


def make_scope_document(new: NewToken) -> dict[str, Any]:
    """The scope as ``pending_scope`` stores it; ``*`` means all."""
    projects = ["*"] if new.projects is None else sorted(set(new.projects))
    return {"environment": new.environment or "*", "projects": projects}


def give_scope(token: ApiToken, scope: dict[str, Any]) -> None:
    """Saves the token with access to the scope, all parts of which must exist."""
    token.pending_scope = None
    token.environment_id = None if scope["environment"] == "*" else scope["environment"]
    token.all_projects = scope["projects"] == ["*"]
    token.save()
    if not token.all_projects:
        ApiTokenProject.objects.bulk_create(
            ApiTokenProject(token=token, project_id=project) for project in scope["projects"]
        )


def _delete(token: ApiToken, *, caller: Caller) -> None:
    projects = read_scope(token)
    record_token(EventType.API_TOKEN_DELETED, projects, document(token, projects), None, caller=caller)
    token.delete()


def record_token(type_: EventType, projects: list[str], before: Any, after: Any, *, caller: Caller) -> None:
    token_document = after or before
    record(
        Event(
            type=type_,
            project=projects[0] if len(projects) == 1 else None,
            environment=None if token_document["environment"] == "*" else token_document["environment"],
            subject=token_document["tokenName"],
            before=before,
            after=after,
        ),
        actor=caller,
    )


def _find_kind_problems(new: NewToken) -> Iterable[Problem]:
    if new.kind == Kind.ADMIN:
        if new.environment is not None:
            yield Problem(
                "environment", 'an admin token is for all environments: leave environment out or send "*"'
            )
    elif new.environment is None:
        yield Problem("environment", f"a {new.kind} token is for one environment")
    elif not Environment.objects.filter(name=new.environment).exists():
        yield Problem("environment", describe_unknown_environment(new.environment))


def _find_project_problems(new: NewToken, caller: Caller, locked: dict[str, Project]) -> Iterable[Problem]:
    if new.projects is None:
        if not caller.reads_all_projects:
            yield Problem(
                "projects", "list projects: you cannot read all of them, so your tokens cannot either"
            )
        return
    if new.kind == Kind.ADMIN:
        yield Problem("projects", 'an admin token is for all projects: leave projects out or send ["*"]')
        return
    if not new.projects:
        yield Problem("projects", 'list the projects of the token, or send ["*"] for all projects')
    for index, project_id in enumerate(new.projects):
        path = f"projects[{index}]"
        if project_id not in locked:
            yield Problem(path, describe_unknown_project(caller, project_id))
        elif locked[project_id].archived_at is not None:
            yield Problem(path, f"project {project_id} is archived")


def access_project_token_for_update(project_id: str, key: str) -> ApiToken:
    """A token with the project in its scope, locked. Raises NotFound."""
    tokens = ApiToken.objects.select_for_update(of=("self",)).filter(scopes__project_id=project_id)
    matching = list(filter_by_key(tokens, key).order_by("id")[:2])
    if len(matching) != 1:
        raise NotFound(f"API token not found in project {project_id}.")
    return matching[0]


# Changes that a token may make: wording, and the required permissions.
CHANGES: dict[str, tuple[str, tuple[Permission, ...]]] = {
    "toggle": ("turn flags on and off", (Permission.UPDATE_FEATURE_ENVIRONMENT,)),
    "strategies": (
        "add, edit and delete strategies",
        (
            Permission.CREATE_FEATURE_STRATEGY,
            Permission.UPDATE_FEATURE_STRATEGY,
            Permission.DELETE_FEATURE_STRATEGY,
        ),
    ),
    "variants": ("edit variants", (Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS,)),
}
SHORT = {"toggle": "Switch flags", "strategies": "Edit strategies", "variants": "Edit variants"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAutomation:
    """``environment`` None means all environments; ``may`` names some of CHANGES."""

    name: str
    projects: tuple[str, ...]
    environment: str | None
    may: tuple[str, ...]
    expires_at: datetime | None = None


@transactional
def create_automation(new: NewAutomation, *, caller: Caller) -> tuple[ApiToken, str]:
    """Creates the service account ``new.name`` with its role and token. Returns the token and its secret.

    Reuses a role with exactly these permissions. Raises NoAccess, ValidationError, NameExists, NotFound.
    """
    caller.check(Permission.ADMIN)
    check_problems(_list_problems(new))
    account = create_account(NewAccount(username=new.name, is_service=True), caller=caller)
    role = _find_or_create_role(new, caller)
    for project in sorted(set(new.projects)):
        add_roles(project, [Holders("user", (account.pk,))], [role.pk], caller=caller)
    return create_personal_token(account, name=new.name, expires_at=new.expires_at, caller=caller)


def describe_new_scope(new: NewAutomation) -> str:
    """``ci may turn flags on and off in production of checkout.``"""
    where = f"in {new.environment}" if new.environment else "in all environments"
    return f"{new.name} may {join_words(CHANGES[each][0] for each in new.may)} {where} of {join_words(new.projects)}."


def _list_problems(new: NewAutomation) -> Iterable[Problem]:
    if not new.projects:
        yield Problem("projects", "Choose the projects in which it may change flags.")
    if not new.may or not set(new.may) <= CHANGES.keys():
        yield Problem("may", "Choose what it may change.")
    if new.environment is not None and not Environment.objects.filter(name=new.environment).exists():
        yield Problem("environment", describe_unknown_environment(new.environment))


def _find_or_create_role(new: NewAutomation, caller: Caller) -> Role:
    permissions = [
        HeldPermission(each.value, new.environment) for change in new.may for each in CHANGES[change][1]
    ]
    return _find_same_role(set(permissions)) or create_role(
        _free_name(new),
        description=f"For service accounts. {join_words(SHORT[each] for each in new.may)}, nothing else.",
        type=Role.Type.CUSTOM.value,
        permissions=permissions,
        caller=caller,
    )


def _find_same_role(permissions: set[HeldPermission]) -> Role | None:
    permission = permissions.copy().pop()
    roles = Role.objects.filter(
        type=Role.Type.CUSTOM,
        permissions__permission=permission.permission,
        permissions__environment=permission.environment,
    )
    return next((role for role in roles.order_by("id") if set(role.held_permissions()) == permissions), None)


def _free_name(new: NewAutomation) -> str:
    everything: Sequence[str] = tuple(CHANGES)
    purpose = (
        "Change flags" if set(new.may) == set(everything) else join_words(SHORT[each] for each in new.may)
    )
    name = f"{purpose} in {new.environment or 'all environments'}"
    used_names = set(Role.objects.filter(name__startswith=name).values_list("name", flat=True))
    names = (name if number == 1 else f"{name} ({number})" for number in count(1))
    return next(each for each in names if each not in used_names)
