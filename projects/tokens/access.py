"""Decides which API tokens a caller may see, create, change and revoke. Only admins manage admin tokens."""

from typing import Literal

from django.db.models import Exists, OuterRef, Q, QuerySet

from flagadmin.core.errors import NotFound, pluralize
from flagadmin.core.http.fields import is_id
from groups.access import Caller, Permission
from groups.models import ApiToken, ApiTokenProject, User
from groups.tokens import hash_secret
from projects.access import list_projects_with

Verb = Literal["CREATE", "READ", "UPDATE", "DELETE"]
Kind = ApiToken.Kind
ELLIPSIS = "…"

LIST_PERMISSIONS = (
    Permission.READ_CLIENT_API_TOKEN,
    Permission.READ_FRONTEND_API_TOKEN,
    Permission.READ_PROJECT_API_TOKEN,
)
"""Any one of them allows to list some tokens."""
_KINDS = (Kind.ADMIN, Kind.BACKEND, Kind.FRONTEND)
_NAMES = {Kind.BACKEND: "CLIENT", Kind.FRONTEND: "FRONTEND"}


def find_permission(verb: Verb, kind: str) -> Permission:
    """The permission: ``CREATE_CLIENT_API_TOKEN`` for a backend token; always ADMIN for an admin token."""
    name = _NAMES.get(Kind(kind))
    return Permission[f"{verb}_{name}_API_TOKEN"] if name else Permission.ADMIN


def find_allowed_kinds(caller: Caller, verb: Verb) -> list[str]:
    """The kinds of token for which the caller has the permission."""
    return [kind for kind in _KINDS if caller.can(find_permission(verb, kind))]


def list_permissions(verb: Verb) -> tuple[Permission, ...]:
    """The permissions for each kind of token; any one of them allows ``verb`` for some kind."""
    return tuple(find_permission(verb, kind) for kind in _KINDS)


def check_any_kind(caller: Caller, verb: Verb) -> list[str]:
    """The kinds of token for which the caller has the permission, at least one.

    Raises NoAccess naming the permissions, any one of which is enough.
    """
    caller.check_any(list_permissions(verb))
    return find_allowed_kinds(caller, verb)


def find_readable_tokens(caller: Caller) -> QuerySet[ApiToken]:
    """The tokens that the caller may list, never personal ones. Raises NoAccess if it may list none."""
    return ApiToken.objects.filter(_not_only_of_hidden(caller), kind__in=check_any_kind(caller, "READ"))


def _not_only_of_hidden(caller: Caller) -> Q:
    """All tokens but those whose projects are all hidden from the caller, whose prefix names the project."""
    if not (hidden := caller.rights.hidden):
        return Q()
    scopes = ApiTokenProject.objects.filter(token=OuterRef("pk"))
    return ~Exists(scopes) | Exists(scopes.exclude(project_id__in=hidden))


def filter_by_key(tokens: QuerySet[ApiToken], key: str) -> QuerySet[ApiToken]:
    """Finds the token named in a path, by its id, its full secret, or the visible prefix shown in lists."""
    if is_id(key):
        return tokens.filter(id=int(key))
    by_secret = tokens.filter(secret_hash=hash_secret(key))
    return by_secret if by_secret.exists() else tokens.filter(prefix=key.removesuffix(ELLIPSIS))


def access_token_for_update(caller: Caller, key: str, verb: Literal["UPDATE", "DELETE"]) -> ApiToken:
    """The token, locked. Raises NoAccess, NotFound."""
    check_any_kind(caller, verb)
    tokens = ApiToken.objects.select_for_update(no_key=verb == "UPDATE").exclude(kind=Kind.PERSONAL)
    matching = list(filter_by_key(tokens.filter(_not_only_of_hidden(caller)), key).order_by("id")[:2])
    if len(matching) != 1 or not _visible(caller, matching[0]):
        raise NotFound("API token not found.")
    caller.check(find_permission(verb, matching[0].kind))
    return matching[0]


def _visible(caller: Caller, token: ApiToken) -> bool:
    return any(token.kind in find_allowed_kinds(caller, verb) for verb in ("READ", "UPDATE", "DELETE"))


def find_visible_tokens(caller: Caller) -> QuerySet[ApiToken]:
    """The tokens that the caller may see.

    These are all tokens of the kinds that its root permissions allow, and the tokens of projects whose tokens
    it may read. Raises NoAccess.
    """
    projects = list_projects_with(caller, Permission.READ_PROJECT_API_TOKEN)
    kinds = find_allowed_kinds(caller, "READ") if projects else check_any_kind(caller, "READ")
    in_projects = ApiTokenProject.objects.filter(project_id__in=projects).values("token")
    tokens = ApiToken.objects.exclude(kind=Kind.PERSONAL)
    return tokens.filter(_not_only_of_hidden(caller), Q(kind__in=kinds) | Q(pk__in=in_projects))


def read_listed_tokens(caller: Caller) -> QuerySet[ApiToken]:
    """The tokens that the caller may see and, for admins, those of service accounts. Raises NoAccess."""
    tokens = find_visible_tokens(caller)
    if caller.is_admin:
        tokens |= ApiToken.objects.filter(kind=Kind.PERSONAL, user__is_service=True)
    return tokens.select_related("user__root_role").prefetch_related(
        "scopes", "user__grants__role__permissions"
    )


def describe_automation(user: User) -> str:
    """Describes the scope of a service account's own roles: ``checkout · production``, ``Editor``."""
    words = [user.root_role.name] if user.root_role else []
    grants = list(user.grants.all())
    if grants:
        environment_ids = [row.environment_id for grant in grants for row in grant.role.permissions.all()]
        environments = (
            "all environments"
            if None in environment_ids
            else ", ".join(sorted(filter(None, set(environment_ids))))
        )
        words.append(f"{', '.join(sorted({grant.project_id for grant in grants}))} · {environments}")
    return "; ".join(words) or "no project"


def list_scope_projects(token: ApiToken) -> list[str]:
    """The ids in the token's scope, or those that a pending token waits for (``*`` for all)."""
    if token.pending_scope is not None:
        return list(token.pending_scope["projects"])
    return [scope.project_id for scope in token.scopes.all()]


def describe_scope(token: ApiToken, caller: Caller) -> str:
    """Describes the scope: ``all projects · production``. Only counts projects that the caller may not read."""
    project_ids = list_scope_projects(token)
    readable = sorted(project for project in project_ids if caller.can_read(project))
    if hidden := len(project_ids) - len(readable):
        readable.append(pluralize(hidden, "other"))
    is_for_all = token.all_projects or project_ids == ["*"]
    projects = "all projects" if is_for_all else ", ".join(readable) or "no project"
    environment = token.pending_scope["environment"] if token.pending_scope else token.environment_id
    return f"{projects} · {environment or 'all environments'}"
