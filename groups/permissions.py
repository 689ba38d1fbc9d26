"""The names of all permissions, and the built-in roles. Constants only.

Names, scopes and display names are those of the reference server, so that its clients and role exports work
unchanged. A permission with scope ``environment`` is held in a project, for one environment or (None) for
all.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Scope(StrEnum):
    ROOT = "root"
    PROJECT = "project"
    ENVIRONMENT = "environment"


class Permission(StrEnum):
    """All permissions, with ``.scope`` (where one can be held), ``.display`` (its name) and ``.id``."""

    scope: Scope
    display: str
    id: int

    def __new__(cls, name: str, scope: Scope, display: str) -> "Permission":
        member = str.__new__(cls, name)
        member._value_ = name
        member.scope = scope
        member.display = display
        # Clients of the reference server expect a numeric id. Permissions are stored by name, so the numbers
        # may change.
        member.id = len(cls.__members__) + 1
        return member

    ADMIN = "ADMIN", Scope.ROOT, "Admin"
    CREATE_ADDON = "CREATE_ADDON", Scope.ROOT, "Create addons"
    CREATE_CLIENT_API_TOKEN = "CREATE_CLIENT_API_TOKEN", Scope.ROOT, "Create Backend tokens"
    CREATE_CONTEXT_FIELD = "CREATE_CONTEXT_FIELD", Scope.ROOT, "Create context fields"
    CREATE_FRONTEND_API_TOKEN = "CREATE_FRONTEND_API_TOKEN", Scope.ROOT, "Create Frontend tokens"
    CREATE_PROJECT = "CREATE_PROJECT", Scope.ROOT, "Create projects"
    CREATE_SEGMENT = "CREATE_SEGMENT", Scope.ROOT, "Create segments"
    CREATE_STRATEGY = "CREATE_STRATEGY", Scope.ROOT, "Create activation strategies"
    CREATE_TAG_TYPE = "CREATE_TAG_TYPE", Scope.ROOT, "Create tag types"
    DELETE_ADDON = "DELETE_ADDON", Scope.ROOT, "Delete addons"
    DELETE_CLIENT_API_TOKEN = "DELETE_CLIENT_API_TOKEN", Scope.ROOT, "Delete Backend tokens"
    DELETE_CONTEXT_FIELD = "DELETE_CONTEXT_FIELD", Scope.ROOT, "Delete context fields"
    DELETE_FRONTEND_API_TOKEN = "DELETE_FRONTEND_API_TOKEN", Scope.ROOT, "Delete Frontend tokens"
    DELETE_SEGMENT = "DELETE_SEGMENT", Scope.ROOT, "Delete segments"
    DELETE_STRATEGY = "DELETE_STRATEGY", Scope.ROOT, "Delete strategies"
    DELETE_TAG_TYPE = "DELETE_TAG_TYPE", Scope.ROOT, "Delete tag types"
    READ_CLIENT_API_TOKEN = "READ_CLIENT_API_TOKEN", Scope.ROOT, "Read Backend tokens"
    READ_FRONTEND_API_TOKEN = "READ_FRONTEND_API_TOKEN", Scope.ROOT, "Read Frontend tokens"
    READ_LOGS = "READ_LOGS", Scope.ROOT, "Read instance logs and login history"
    READ_ROLE = "READ_ROLE", Scope.ROOT, "Read roles"
    RELEASE_PLAN_TEMPLATE_CREATE = "RELEASE_PLAN_TEMPLATE_CREATE", Scope.ROOT, "Create release plan template"
    RELEASE_PLAN_TEMPLATE_DELETE = "RELEASE_PLAN_TEMPLATE_DELETE", Scope.ROOT, "Delete release plan template"
    RELEASE_PLAN_TEMPLATE_UPDATE = "RELEASE_PLAN_TEMPLATE_UPDATE", Scope.ROOT, "Update release plan template"
    UPDATE_ADDON = "UPDATE_ADDON", Scope.ROOT, "Update addons"
    UPDATE_APPLICATION = "UPDATE_APPLICATION", Scope.ROOT, "Update applications"
    UPDATE_AUTH_CONFIGURATION = (
        "UPDATE_AUTH_CONFIGURATION",
        Scope.ROOT,
        "Change authentication settings (SSO)",
    )
    UPDATE_CLIENT_API_TOKEN = "UPDATE_CLIENT_API_TOKEN", Scope.ROOT, "Update Backend tokens"
    UPDATE_CONTEXT_FIELD = "UPDATE_CONTEXT_FIELD", Scope.ROOT, "Update context fields"
    UPDATE_CORS = "UPDATE_CORS", Scope.ROOT, "Update CORS settings"
    UPDATE_FRONTEND_API_TOKEN = "UPDATE_FRONTEND_API_TOKEN", Scope.ROOT, "Update Frontend tokens"
    UPDATE_INSTANCE_BANNERS = "UPDATE_INSTANCE_BANNERS", Scope.ROOT, "Change instance banners"
    UPDATE_MAINTENANCE_MODE = "UPDATE_MAINTENANCE_MODE", Scope.ROOT, "Change maintenance mode state"
    UPDATE_SEGMENT = "UPDATE_SEGMENT", Scope.ROOT, "Edit segments"
    UPDATE_STRATEGY = "UPDATE_STRATEGY", Scope.ROOT, "Update strategies"
    UPDATE_TAG_TYPE = "UPDATE_TAG_TYPE", Scope.ROOT, "Update tag types"

    CREATE_FEATURE = "CREATE_FEATURE", Scope.PROJECT, "Create feature flags"
    CREATE_PROJECT_API_TOKEN = (
        "CREATE_PROJECT_API_TOKEN",
        Scope.PROJECT,
        "Create api tokens for a specific project",
    )
    DELETE_FEATURE = "DELETE_FEATURE", Scope.PROJECT, "Delete feature flags"
    DELETE_PROJECT = "DELETE_PROJECT", Scope.PROJECT, "Delete project"
    DELETE_PROJECT_API_TOKEN = (
        "DELETE_PROJECT_API_TOKEN",
        Scope.PROJECT,
        "Delete api tokens for a specific project",
    )
    MOVE_FEATURE_TOGGLE = "MOVE_FEATURE_TOGGLE", Scope.PROJECT, "Change feature flag project"
    PROJECT_CHANGE_REQUEST_READ = (
        "PROJECT_CHANGE_REQUEST_READ",
        Scope.PROJECT,
        "View only access to change request configuration for project",
    )
    PROJECT_CHANGE_REQUEST_WRITE = (
        "PROJECT_CHANGE_REQUEST_WRITE",
        Scope.PROJECT,
        "Write access to change request configuration for project",
    )
    PROJECT_DEFAULT_STRATEGY_READ = (
        "PROJECT_DEFAULT_STRATEGY_READ",
        Scope.PROJECT,
        "View only access to default strategy configuration for project",
    )
    PROJECT_DEFAULT_STRATEGY_WRITE = (
        "PROJECT_DEFAULT_STRATEGY_WRITE",
        Scope.PROJECT,
        "Write access to default strategy configuration for project",
    )
    PROJECT_SETTINGS_READ = "PROJECT_SETTINGS_READ", Scope.PROJECT, "View only access to project settings"
    PROJECT_SETTINGS_WRITE = "PROJECT_SETTINGS_WRITE", Scope.PROJECT, "Write access to project settings"
    PROJECT_USER_ACCESS_READ = (
        "PROJECT_USER_ACCESS_READ",
        Scope.PROJECT,
        "View only access to Project User Access",
    )
    PROJECT_USER_ACCESS_WRITE = (
        "PROJECT_USER_ACCESS_WRITE",
        Scope.PROJECT,
        "Write access to Project User Access",
    )
    READ_PROJECT_API_TOKEN = "READ_PROJECT_API_TOKEN", Scope.PROJECT, "Read api tokens for a specific project"
    UPDATE_FEATURE = "UPDATE_FEATURE", Scope.PROJECT, "Update feature flags"
    UPDATE_FEATURE_DEPENDENCY = "UPDATE_FEATURE_DEPENDENCY", Scope.PROJECT, "Update feature dependency"
    UPDATE_FEATURE_VARIANTS = "UPDATE_FEATURE_VARIANTS", Scope.PROJECT, "Create/edit variants"
    UPDATE_PROJECT = "UPDATE_PROJECT", Scope.PROJECT, "Update project"
    UPDATE_PROJECT_CONTEXT = "UPDATE_PROJECT_CONTEXT", Scope.PROJECT, "Create/edit project context"
    UPDATE_PROJECT_RELEASE_TEMPLATE = (
        "UPDATE_PROJECT_RELEASE_TEMPLATE",
        Scope.PROJECT,
        "Create/edit project release template",
    )
    UPDATE_PROJECT_SEGMENT = "UPDATE_PROJECT_SEGMENT", Scope.PROJECT, "Create/edit project segment"

    APPLY_CHANGE_REQUEST = "APPLY_CHANGE_REQUEST", Scope.ENVIRONMENT, "Apply change requests"
    APPROVE_CHANGE_REQUEST = "APPROVE_CHANGE_REQUEST", Scope.ENVIRONMENT, "Approve/Reject change requests"
    CREATE_FEATURE_STRATEGY = "CREATE_FEATURE_STRATEGY", Scope.ENVIRONMENT, "Create activation strategies"
    DELETE_FEATURE_STRATEGY = "DELETE_FEATURE_STRATEGY", Scope.ENVIRONMENT, "Delete activation strategies"
    SKIP_CHANGE_REQUEST = "SKIP_CHANGE_REQUEST", Scope.ENVIRONMENT, "Skip change request process"
    UPDATE_FEATURE_ENVIRONMENT = "UPDATE_FEATURE_ENVIRONMENT", Scope.ENVIRONMENT, "Enable/disable flags"
    UPDATE_FEATURE_ENVIRONMENT_VARIANTS = (
        "UPDATE_FEATURE_ENVIRONMENT_VARIANTS",
        Scope.ENVIRONMENT,
        "Update variants",
    )
    UPDATE_FEATURE_STRATEGY = "UPDATE_FEATURE_STRATEGY", Scope.ENVIRONMENT, "Update activation strategies"


class BuiltIn(IntEnum):
    """The ids of the built-in roles."""

    ADMIN = 1
    EDITOR = 2
    VIEWER = 3
    OWNER = 4
    MEMBER = 5
    READER = 6


# With any one of these, a caller may read roles and groups.
ROLE_READERS = (Permission.ADMIN, Permission.READ_ROLE)

MEMBER_PERMISSIONS = frozenset(
    {
        Permission.CREATE_FEATURE,
        Permission.CREATE_FEATURE_STRATEGY,
        Permission.CREATE_PROJECT_API_TOKEN,
        Permission.DELETE_FEATURE,
        Permission.DELETE_FEATURE_STRATEGY,
        Permission.DELETE_PROJECT_API_TOKEN,
        Permission.READ_PROJECT_API_TOKEN,
        Permission.UPDATE_FEATURE,
        Permission.UPDATE_FEATURE_DEPENDENCY,
        Permission.UPDATE_FEATURE_ENVIRONMENT,
        Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS,
        Permission.UPDATE_FEATURE_STRATEGY,
        Permission.UPDATE_FEATURE_VARIANTS,
    }
)
OWNER_PERMISSIONS = MEMBER_PERMISSIONS | {
    Permission.DELETE_PROJECT,
    Permission.MOVE_FEATURE_TOGGLE,
    Permission.UPDATE_PROJECT,
    Permission.UPDATE_PROJECT_CONTEXT,
    Permission.UPDATE_PROJECT_RELEASE_TEMPLATE,
    Permission.UPDATE_PROJECT_SEGMENT,
}
# Permissions that a project role keeps when it is limited to some environments. All others affect every environment:
# archiving ends a flag, a dependency turns it off, a token reads any environment.
KEPT_WHEN_LIMITED = frozenset(
    {Permission.CREATE_FEATURE, Permission.UPDATE_FEATURE, Permission.READ_PROJECT_API_TOKEN}
)
# The project permissions among these only apply in the default project.
EDITOR_PERMISSIONS = frozenset(
    {
        Permission.CREATE_ADDON,
        Permission.CREATE_CONTEXT_FIELD,
        Permission.CREATE_FEATURE,
        Permission.CREATE_FEATURE_STRATEGY,
        Permission.CREATE_PROJECT,
        Permission.CREATE_PROJECT_API_TOKEN,
        Permission.CREATE_SEGMENT,
        Permission.CREATE_STRATEGY,
        Permission.CREATE_TAG_TYPE,
        Permission.DELETE_ADDON,
        Permission.DELETE_CONTEXT_FIELD,
        Permission.DELETE_FEATURE,
        Permission.DELETE_FEATURE_STRATEGY,
        Permission.DELETE_PROJECT,
        Permission.DELETE_PROJECT_API_TOKEN,
        Permission.DELETE_SEGMENT,
        Permission.DELETE_STRATEGY,
        Permission.DELETE_TAG_TYPE,
        Permission.MOVE_FEATURE_TOGGLE,
        Permission.READ_CLIENT_API_TOKEN,
        Permission.READ_FRONTEND_API_TOKEN,
        Permission.READ_PROJECT_API_TOKEN,
        Permission.RELEASE_PLAN_TEMPLATE_CREATE,
        Permission.RELEASE_PLAN_TEMPLATE_UPDATE,
        Permission.UPDATE_ADDON,
        Permission.UPDATE_APPLICATION,
        Permission.UPDATE_CONTEXT_FIELD,
        Permission.UPDATE_FEATURE,
        Permission.UPDATE_FEATURE_DEPENDENCY,
        Permission.UPDATE_FEATURE_ENVIRONMENT,
        Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS,
        Permission.UPDATE_FEATURE_STRATEGY,
        Permission.UPDATE_FEATURE_VARIANTS,
        Permission.UPDATE_PROJECT,
        Permission.UPDATE_SEGMENT,
        Permission.UPDATE_STRATEGY,
        Permission.UPDATE_TAG_TYPE,
    }
)


@dataclass(frozen=True, slots=True)
class BuiltInRole:
    id: BuiltIn
    name: str
    type: str
    description: str
    permissions: frozenset[Permission]


BUILT_IN_ROLES = (
    BuiltInRole(
        BuiltIn.ADMIN,
        "Admin",
        "root",
        "Can do everything in every project and environment.",
        frozenset({Permission.ADMIN}),
    ),
    BuiltInRole(
        BuiltIn.EDITOR,
        "Editor",
        "root",
        "Can change flags of the default project, create projects, and manage segments, context fields and tag types.",
        EDITOR_PERMISSIONS,
    ),
    BuiltInRole(BuiltIn.VIEWER, "Viewer", "root", "Read-only access to everything.", frozenset()),
    BuiltInRole(
        BuiltIn.OWNER,
        "Owner",
        "project",
        "Can change everything in the project, including its settings and access, and delete it.",
        frozenset(OWNER_PERMISSIONS),
    ),
    BuiltInRole(
        BuiltIn.MEMBER, "Member", "project", "Can change the flags of the project.", MEMBER_PERMISSIONS
    ),
    BuiltInRole(BuiltIn.READER, "Reader", "project", "Read-only access to the project.", frozenset()),
)
