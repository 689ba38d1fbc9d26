"""Lists who may call an operation, from the view sets' own declarations, which are what is enforced."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.plumbing import camelize_operation
from rest_framework.permissions import SAFE_METHODS

from groups.authentication import ConsoleSessionAuthentication
from groups.permissions import Permission
from groups.roles.subjects import name_permission
from groups.viewsets import ViewSet
from projects.viewsets import InProjectViewSet, ScopedViewSet


@dataclass(frozen=True, slots=True)
class Callers:
    """``permissions``: any one of them is enough; if there are none, ``rule`` says what applies."""

    tokens: Sequence[str]
    has_session: bool
    permissions: Sequence[Permission]
    rule: str

    @property
    def named_permissions(self) -> list[tuple[Permission, str]]:
        """Each with its name on the pages of roles."""
        return [(permission, name_permission(permission)) for permission in self.permissions]


def read_callers(generator: SchemaGenerator, document: dict[str, Any]) -> dict[str, Callers]:
    """Reads the callers of each operation that the generator has put into the document, by the operation's id."""
    callers = {}
    for path, _, method, view in generator._get_paths_and_endpoints():
        path, _ = camelize_operation(path, {"operationId": "unused"})
        if operation := document["paths"].get(path, {}).get(method.lower()):
            callers[operation["operationId"]] = find_callers(view, method)
    return callers


def find_callers(view: Any, method: str) -> Callers:
    return Callers(
        tokens=_find_tokens(view),
        has_session=ConsoleSessionAuthentication in view.authentication_classes,
        permissions=_find_permissions(view),
        rule=_find_rule(view, is_read=method in SAFE_METHODS),
    )


def _find_tokens(view: Any) -> Sequence[str]:
    return sorted(kind for permission_class in view.permission_classes for kind in permission_class.kinds)


def _find_permissions(view: Any) -> Sequence[Permission]:
    if not isinstance(view, ViewSet):
        return ()
    needed = view.needed_permissions
    if needed and isinstance(view, ScopedViewSet):
        needed = (*needed, view.permission_in_project)
    return tuple(dict.fromkeys(needed))


def _find_rule(view: Any, *, is_read: bool) -> str:
    if not view.permission_classes:
        return "No token is needed."
    if not isinstance(view, ViewSet):
        return "The token decides which projects and which environment."
    if not is_read:
        return "No permission of its own. What the request changes may need some: a 403 names them."
    named = "the project" if isinstance(view, InProjectViewSet) else "what it names"
    return f"Everyone who can read {named}."
