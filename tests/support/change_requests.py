"""Change requests of production in the shop, by API."""

from typing import Any

from groups.models import Grant, Role, RolePermission, User
from projects.models import ProjectEnvironment
from tests.support.cast import client, make_token, make_user

SHOP = "/api/admin/projects/shop"


MAKE = f"{SHOP}/environments/production/change-requests"


REQUESTS = f"{SHOP}/change-requests"


ON = f"{SHOP}/features/cart/environments/production/on"


OFF = f"{SHOP}/features/cart/environments/production/off"


def guarded(approvals: int | None) -> None:
    links = ProjectEnvironment.objects.filter(project="shop", environment="production")
    links.update(required_approvals=approvals)


def person(name: str, *permissions: str, environment: str | None = "production") -> User:
    """Somebody with these permissions in an environment of the shop (None: all), who can read it."""
    user = make_user(name)
    role = Role.objects.create(name=f"role of {name}", type="custom")
    RolePermission.objects.bulk_create(
        RolePermission(role=role, permission=permission, environment_id=environment)
        for permission in permissions
    )
    Grant.objects.create(role=role, project_id="shop", user=user)
    return user


def reviewer(name: str, *permissions: str, environment: str | None = "production") -> Any:
    """A client of such a person."""
    return client(make_token("personal", user=person(name, *permissions, environment=environment)))


def turn(enabled: bool, flag: str = "cart") -> dict[str, Any]:
    return {"feature": flag, "action": "updateEnabled", "payload": {"enabled": enabled}}


def propose(by: Any, *changes: Any) -> dict[str, Any]:
    answer = by.post(MAKE, list(changes))
    assert answer.status_code == 200, answer.json()
    return answer.json()


def enter(by: Any, request: Any, state: str, headers: Any = None, **more: Any) -> Any:
    body = {"state": state, **more}
    return by.put(f"{REQUESTS}/{request['id']}/state", body, headers=headers)


def sent(by: Any, *changes: Any) -> dict[str, Any]:
    """A request that is in review."""
    answer = enter(by, propose(by, *changes), "In review")
    assert answer.status_code == 200, answer.json()
    return answer.json()
