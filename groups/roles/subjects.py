"""Permissions by subject, each with its name and a sentence for the console."""

from collections.abc import Iterable, Iterator

from groups.permissions import Permission, Scope

# subject: {permission: (name, sentence)}. A subject has permissions of one scope.
SUBJECTS: dict[str, dict[Permission, tuple[str, str]]] = {
    "Flags in environments": {
        Permission.UPDATE_FEATURE_ENVIRONMENT: ("Switch flags", "Turn flags on and off."),
        Permission.CREATE_FEATURE_STRATEGY: (
            "Add strategies",
            "Also the default one when a flag without strategies is turned on.",
        ),
        Permission.UPDATE_FEATURE_STRATEGY: ("Edit strategies", "Rollout, conditions, segments and order."),
        Permission.DELETE_FEATURE_STRATEGY: ("Delete strategies", "Also when an import replaces them."),
        Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS: ("Edit variants", "Add, weight and delete variants of flags."),
    },
    "Change requests": {
        Permission.APPROVE_CHANGE_REQUEST: ("Approve change requests", "Approve or reject those of others."),
        Permission.APPLY_CHANGE_REQUEST: ("Apply change requests", "Make all changes of an approved one."),
        Permission.SKIP_CHANGE_REQUEST: ("Skip change requests", "Change flags at once where others need a request."),
    },
    "Flags": {
        Permission.CREATE_FEATURE: ("Create flags", "Also by cloning and importing."),
        Permission.UPDATE_FEATURE: ("Edit flags", "Description, type, tags, links; mark as stale; revive."),
        Permission.UPDATE_FEATURE_DEPENDENCY: ("Edit dependencies", "Choose the flags a flag depends on."),
        Permission.MOVE_FEATURE_TOGGLE: ("Move flags", "To another project, with this permission there too."),
        Permission.DELETE_FEATURE: ("Archive and delete flags", "Archive flags, and delete archived flags for good."),
    },
    "Project": {
        Permission.UPDATE_PROJECT: ("Manage the project", "Settings, environments, default strategies, access."),
        Permission.PROJECT_SETTINGS_WRITE: ("Edit settings", "Name, description and other settings only."),
        Permission.PROJECT_CHANGE_REQUEST_WRITE: ("Require change requests", "Where, and how many approvals."),
        Permission.PROJECT_DEFAULT_STRATEGY_WRITE: ("Edit default strategies", "What new flags start with."),
        Permission.UPDATE_PROJECT_SEGMENT: ("Edit segments", "Create, edit and delete the project's own."),
        Permission.UPDATE_PROJECT_CONTEXT: ("Edit context fields", "Create, edit and delete the project's own."),
        Permission.UPDATE_PROJECT_RELEASE_TEMPLATE: ("Edit release templates", "Those of the project."),
        Permission.DELETE_PROJECT: ("Archive and delete the project", "Deleting removes its archived flags for good."),
    },
    "Access to the project": {
        Permission.PROJECT_USER_ACCESS_WRITE: ("Grant and revoke roles", "Only roles whose permissions they have."),
        Permission.READ_PROJECT_API_TOKEN: ("View API tokens", "Names, scopes and last use, never secrets."),
        Permission.CREATE_PROJECT_API_TOKEN: ("Create API tokens", "SDK tokens for this project only."),
        Permission.DELETE_PROJECT_API_TOKEN: ("Revoke API tokens", "Clients that use them get 401 immediately."),
    },
    "Projects": {
        Permission.CREATE_PROJECT: ("Create projects", "Whoever creates a project becomes its owner."),
        Permission.UPDATE_APPLICATION: ("Edit applications", "Edit and delete entries of the applications list."),
    },
    "Segments": {
        Permission.CREATE_SEGMENT: ("Create segments", "Available to all projects; also by importing."),
        Permission.UPDATE_SEGMENT: ("Edit segments", "A change affects every flag that uses the segment."),
        Permission.DELETE_SEGMENT: ("Delete segments", "Only segments that no flag uses."),
    },
    "Context fields": {
        Permission.CREATE_CONTEXT_FIELD: ("Create context fields", "Available to all projects; also by importing."),
        Permission.UPDATE_CONTEXT_FIELD: ("Edit context fields", "Description, legal values and stickiness."),
        Permission.DELETE_CONTEXT_FIELD: ("Delete context fields", "Conditions that use a deleted field keep it."),
    },
    "Strategy types": {
        Permission.CREATE_STRATEGY: ("Create strategy types", "Custom strategies, evaluated by SDKs."),
        Permission.UPDATE_STRATEGY: ("Edit strategy types", "Edit, deprecate and reactivate them."),
        Permission.DELETE_STRATEGY: ("Delete strategy types", "Only custom ones that no flag uses."),
    },
    "Release templates": {
        Permission.RELEASE_PLAN_TEMPLATE_CREATE: ("Create release templates", "Available to all projects."),
        Permission.RELEASE_PLAN_TEMPLATE_UPDATE: ("Edit release templates", "Also archive them. Plans stay."),
        Permission.RELEASE_PLAN_TEMPLATE_DELETE: ("Delete release templates", "Plans made from one stay."),
    },
    "Tag types": {
        Permission.CREATE_TAG_TYPE: ("Create tag types", "Including via import."),
        Permission.UPDATE_TAG_TYPE: ("Edit tag types", "Description, icon and color."),
        Permission.DELETE_TAG_TYPE: ("Delete tag types", "Unused tag types only."),
    },
    "API tokens": {
        Permission.READ_CLIENT_API_TOKEN: ("View backend tokens", "Names, scopes and last use, never secrets."),
        Permission.CREATE_CLIENT_API_TOKEN: ("Create backend tokens", "For any project and environment."),
        Permission.UPDATE_CLIENT_API_TOKEN: ("Edit backend tokens", "Change when they expire."),
        Permission.DELETE_CLIENT_API_TOKEN: ("Revoke backend tokens", "SDKs that use them get 401 immediately."),
        Permission.READ_FRONTEND_API_TOKEN: ("View frontend tokens", "Names, scopes and last use, never secrets."),
        Permission.CREATE_FRONTEND_API_TOKEN: ("Create frontend tokens", "For any project and environment."),
        Permission.UPDATE_FRONTEND_API_TOKEN: ("Edit frontend tokens", "Change when they expire."),
        Permission.DELETE_FRONTEND_API_TOKEN: ("Revoke frontend tokens", "SDKs that use them get 401 immediately."),
    },
    "Integrations": {
        Permission.CREATE_ADDON: ("Create integrations", "Integrations get the chosen events of all projects."),
        Permission.UPDATE_ADDON: ("Edit integrations", "Also send tests, send again, and make signing keys."),
        Permission.DELETE_ADDON: ("Delete integrations", "Includes delivery history."),
    },
    "Access and activity": {
        Permission.READ_ROLE: ("View roles and groups", "Their permissions, members and where they are used."),
        Permission.READ_LOGS: ("View account events", "Logins and changes to accounts and tokens, in the activity."),
    },
    "Installation": {
        Permission.UPDATE_MAINTENANCE_MODE: ("Switch maintenance mode", "While it is on, nobody can change anything."),
        Permission.UPDATE_CORS: ("Set allowed origins", "The pages that may call the frontend API and OFREP."),
    },
}  # fmt: skip

_NAMES = {permission: name for subject in SUBJECTS.values() for permission, (name, _) in subject.items()}
# Permissions of features that do not exist here. Stored roles keep them for clients of the reference server.
NOT_USED = frozenset(Permission) - _NAMES.keys() - {Permission.ADMIN}


def name_permission(permission: Permission) -> str:
    """Its name in the console: ``Add strategies``."""
    return _NAMES.get(permission, permission.display)


def is_used(name: str) -> bool:
    """Whether a stored permission has an effect here."""
    return name in Permission.__members__ and Permission[name] not in NOT_USED


def list_unused_names(names: Iterable[str]) -> list[str]:
    """The display names of those permissions that have no effect here."""
    return sorted(
        {
            Permission[name].display if name in Permission.__members__ else name
            for name in names
            if not is_used(name)
        }
    )


def list_offered(*, root: bool) -> Iterator[tuple[str, dict[Permission, tuple[str, str]]]]:
    """The subjects whose permissions a root role or a project role can have."""
    for subject, permissions in SUBJECTS.items():
        if (next(iter(permissions)).scope is Scope.ROOT) == root:
            yield subject, permissions
