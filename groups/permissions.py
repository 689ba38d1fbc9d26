"""The names of all permissions, and the built-in roles. Constants only.

Names, scopes and display names are those of the reference server, so that its clients and role exports work
unchanged. A permission with scope ``environment`` is held in a project, for one environment or (None) for
all.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum, auto
from typing import Any


class Scope(StrEnum):
    ROOT = "root"
    PROJECT = "project"
    ENVIRONMENT = "environment"


class BuiltIn(IntEnum):
    """The ids of the built-in roles."""

    ADMIN = 1
    EDITOR = 2
    VIEWER = 3
    OWNER = 4
    MEMBER = 5
    READER = 6


# The built-in roles that have a permission, beside Admin, which has all.
_EDITORS = frozenset({BuiltIn.EDITOR})
_OWNERS = frozenset({BuiltIn.OWNER})
_OWNERS_AND_EDITORS = _OWNERS | _EDITORS
_MEMBERS = _OWNERS_AND_EDITORS | {BuiltIn.MEMBER}
_ROOT, _PROJECT, _ENVIRONMENT = Scope


class Permission(StrEnum):
    """All permissions, with ``.scope`` (where one can be held), ``.display`` (its name), ``.roles`` (the built-in roles
    that have it) and ``.id``.

    The project permissions of Editor only apply in the default project.
    """

    scope: Scope
    display: str
    roles: frozenset[BuiltIn]
    id: int

    @staticmethod
    def _generate_next_value_(name: str, *_: Any) -> str:
        return name

    def __new__(
        cls, name: str, scope: Scope, display: str, roles: frozenset[BuiltIn] = frozenset()
    ) -> "Permission":
        member = str.__new__(cls, name)
        member._value_ = name
        member.scope = scope
        member.display = display
        member.roles = roles
        # Clients of the reference server expect a numeric id. Permissions are stored by name, so the numbers
        # may change.
        member.id = len(cls.__members__) + 1
        return member

    ADMIN = auto(), _ROOT, "Admin"
    CREATE_ADDON = auto(), _ROOT, "Create addons", _EDITORS
    CREATE_CLIENT_API_TOKEN = auto(), _ROOT, "Create Backend tokens"
    CREATE_CONTEXT_FIELD = auto(), _ROOT, "Create context fields", _EDITORS
    CREATE_FRONTEND_API_TOKEN = auto(), _ROOT, "Create Frontend tokens"
    CREATE_PROJECT = auto(), _ROOT, "Create projects", _EDITORS
    CREATE_SEGMENT = auto(), _ROOT, "Create segments", _EDITORS
    CREATE_STRATEGY = auto(), _ROOT, "Create activation strategies", _EDITORS
    CREATE_TAG_TYPE = auto(), _ROOT, "Create tag types", _EDITORS
    DELETE_ADDON = auto(), _ROOT, "Delete addons", _EDITORS
    DELETE_CLIENT_API_TOKEN = auto(), _ROOT, "Delete Backend tokens"
    DELETE_CONTEXT_FIELD = auto(), _ROOT, "Delete context fields", _EDITORS
    DELETE_FRONTEND_API_TOKEN = auto(), _ROOT, "Delete Frontend tokens"
    DELETE_SEGMENT = auto(), _ROOT, "Delete segments", _EDITORS
    DELETE_STRATEGY = auto(), _ROOT, "Delete strategies", _EDITORS
    DELETE_TAG_TYPE = auto(), _ROOT, "Delete tag types", _EDITORS
    READ_CLIENT_API_TOKEN = auto(), _ROOT, "Read Backend tokens", _EDITORS
    READ_FRONTEND_API_TOKEN = auto(), _ROOT, "Read Frontend tokens", _EDITORS
    READ_LOGS = auto(), _ROOT, "Read instance logs and login history"
    READ_ROLE = auto(), _ROOT, "Read roles"
    RELEASE_PLAN_TEMPLATE_CREATE = auto(), _ROOT, "Create release plan template", _EDITORS
    RELEASE_PLAN_TEMPLATE_DELETE = auto(), _ROOT, "Delete release plan template"
    RELEASE_PLAN_TEMPLATE_UPDATE = auto(), _ROOT, "Update release plan template", _EDITORS
    UPDATE_ADDON = auto(), _ROOT, "Update addons", _EDITORS
    UPDATE_APPLICATION = auto(), _ROOT, "Update applications", _EDITORS
    UPDATE_AUTH_CONFIGURATION = auto(), _ROOT, "Change authentication settings (SSO)"
    UPDATE_CLIENT_API_TOKEN = auto(), _ROOT, "Update Backend tokens"
    UPDATE_CONTEXT_FIELD = auto(), _ROOT, "Update context fields", _EDITORS
    UPDATE_CORS = auto(), _ROOT, "Update CORS settings"
    UPDATE_FRONTEND_API_TOKEN = auto(), _ROOT, "Update Frontend tokens"
    UPDATE_INSTANCE_BANNERS = auto(), _ROOT, "Change instance banners"
    UPDATE_MAINTENANCE_MODE = auto(), _ROOT, "Change maintenance mode state"
    UPDATE_SEGMENT = auto(), _ROOT, "Edit segments", _EDITORS
    UPDATE_STRATEGY = auto(), _ROOT, "Update strategies", _EDITORS
    UPDATE_TAG_TYPE = auto(), _ROOT, "Update tag types", _EDITORS

    CREATE_FEATURE = auto(), _PROJECT, "Create feature flags", _MEMBERS
    CREATE_PROJECT_API_TOKEN = auto(), _PROJECT, "Create api tokens for a specific project", _MEMBERS
    DELETE_FEATURE = auto(), _PROJECT, "Delete feature flags", _MEMBERS
    DELETE_PROJECT = auto(), _PROJECT, "Delete project", _OWNERS_AND_EDITORS
    DELETE_PROJECT_API_TOKEN = auto(), _PROJECT, "Delete api tokens for a specific project", _MEMBERS
    MOVE_FEATURE_TOGGLE = auto(), _PROJECT, "Change feature flag project", _OWNERS_AND_EDITORS
    PROJECT_CHANGE_REQUEST_READ = (
        auto(),
        _PROJECT,
        "View only access to change request configuration for project",
    )
    PROJECT_CHANGE_REQUEST_WRITE = (
        auto(),
        _PROJECT,
        "Write access to change request configuration for project",
    )
    PROJECT_DEFAULT_STRATEGY_READ = (
        auto(),
        _PROJECT,
        "View only access to default strategy configuration for project",
    )
    PROJECT_DEFAULT_STRATEGY_WRITE = (
        auto(),
        _PROJECT,
        "Write access to default strategy configuration for project",
    )
    PROJECT_SETTINGS_READ = auto(), _PROJECT, "View only access to project settings"
    PROJECT_SETTINGS_WRITE = auto(), _PROJECT, "Write access to project settings"
    PROJECT_USER_ACCESS_READ = auto(), _PROJECT, "View only access to Project User Access"
    PROJECT_USER_ACCESS_WRITE = auto(), _PROJECT, "Write access to Project User Access"
    READ_PROJECT_API_TOKEN = auto(), _PROJECT, "Read api tokens for a specific project", _MEMBERS
    UPDATE_FEATURE = auto(), _PROJECT, "Update feature flags", _MEMBERS
    UPDATE_FEATURE_DEPENDENCY = auto(), _PROJECT, "Update feature dependency", _MEMBERS
    UPDATE_FEATURE_VARIANTS = auto(), _PROJECT, "Create/edit variants", _MEMBERS
    UPDATE_PROJECT = auto(), _PROJECT, "Update project", _OWNERS_AND_EDITORS
    UPDATE_PROJECT_CONTEXT = auto(), _PROJECT, "Create/edit project context", _OWNERS
    UPDATE_PROJECT_RELEASE_TEMPLATE = auto(), _PROJECT, "Create/edit project release template", _OWNERS
    UPDATE_PROJECT_SEGMENT = auto(), _PROJECT, "Create/edit project segment", _OWNERS

    APPLY_CHANGE_REQUEST = auto(), _ENVIRONMENT, "Apply change requests"
    APPROVE_CHANGE_REQUEST = auto(), _ENVIRONMENT, "Approve/Reject change requests"
    CREATE_FEATURE_STRATEGY = auto(), _ENVIRONMENT, "Create activation strategies", _MEMBERS
    DELETE_FEATURE_STRATEGY = auto(), _ENVIRONMENT, "Delete activation strategies", _MEMBERS
    SKIP_CHANGE_REQUEST = auto(), _ENVIRONMENT, "Skip change request process"
    UPDATE_FEATURE_ENVIRONMENT = auto(), _ENVIRONMENT, "Enable/disable flags", _MEMBERS
    UPDATE_FEATURE_ENVIRONMENT_VARIANTS = auto(), _ENVIRONMENT, "Update variants", _MEMBERS
    UPDATE_FEATURE_STRATEGY = auto(), _ENVIRONMENT, "Update activation strategies", _MEMBERS


# With any one of these, a caller may read roles and groups.
ROLE_READERS = (Permission.ADMIN, Permission.READ_ROLE)
# Permissions that a project role keeps when it is limited to some environments. All others affect every environment:
# archiving ends a flag, a dependency turns it off, a token reads any environment.
KEPT_WHEN_LIMITED = frozenset(
    {Permission.CREATE_FEATURE, Permission.UPDATE_FEATURE, Permission.READ_PROJECT_API_TOKEN}
)


@dataclass(frozen=True, slots=True)
class BuiltInRole:
    id: BuiltIn
    name: str
    type: str
    description: str

    @property
    def permissions(self) -> frozenset[Permission]:
        if self.id is BuiltIn.ADMIN:
            return frozenset({Permission.ADMIN})
        return frozenset(permission for permission in Permission if self.id in permission.roles)


BUILT_IN_ROLES = (
    BuiltInRole(
        BuiltIn.ADMIN,
        "Admin",
        "root",
        "Can do everything in every project and environment.",
    ),
    BuiltInRole(
        BuiltIn.EDITOR,
        "Editor",
        "root",
        "Can change flags of the default project, create projects, and manage segments, context fields and tag types.",
    ),
    BuiltInRole(BuiltIn.VIEWER, "Viewer", "root", "Read-only access to everything."),
    BuiltInRole(
        BuiltIn.OWNER,
        "Owner",
        "project",
        "Can change everything in the project, including its settings and access, and delete it.",
    ),
    BuiltInRole(BuiltIn.MEMBER, "Member", "project", "Can change the flags of the project."),
    BuiltInRole(BuiltIn.READER, "Reader", "project", "Read-only access to the project."),
)
