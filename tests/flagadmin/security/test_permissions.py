"""Each operation succeeds with exactly the permission it needs, and fails without it (permissions.tsv)."""

from pathlib import Path

import pytest
from django.utils import timezone

from groups.models import Grant, Role, RolePermission
from groups.permissions import Permission, Scope
from integrations.signals.actions import READERS
from tests.flagadmin.security.batches import in_batches
from tests.flagadmin.security.calls import HARMLESS, calls, send
from tests.flagadmin.security.routes import routes
from tests.support.cast import client, make_token, make_user

ROUTES = {str(route): route for route in routes("api/admin/")}
ROWS = [line.split("\t") for line in Path(__file__).with_name("permissions.tsv").read_text().splitlines()]


def name_row(row):
    method, address, _needed = row
    return f"{method} {address.removeprefix('/api/admin')}"


def alternatives(text):
    """``A|B+C``: A alone will do, or B together with C."""
    return [{Permission[name] for name in part.split("+")} for part in text.split("|")]


class Holder:
    """Somebody who holds what the test says: root permissions, and the others in shop and default."""

    def __init__(self):
        self.root = Role.objects.create(name="held by root", type="root-custom")
        self.project = Role.objects.create(name="held in projects", type="custom")
        user = make_user("holder", root_role=self.root.pk)
        for project in ("shop", "default"):
            Grant.objects.create(user=user, role=self.project, project_id=project)
        self.client = client(make_token("personal", user=user, seen_at=timezone.now()))

    def hold(self, permissions, *, environment=None):
        RolePermission.objects.filter(role__in=[self.root, self.project]).delete()
        RolePermission.objects.bulk_create(
            RolePermission(
                role=self.root if permission.scope is Scope.ROOT else self.project,
                permission=permission.value,
                environment_id=environment if permission.scope is Scope.ENVIRONMENT else None,
            )
            for permission in permissions
        )


@pytest.fixture
def holder(world):
    return Holder()


INVISIBLE = "/api/admin/signals/<"
"""The sources of signals do not exist for who may see none."""


def is_refused(response, *, invisible=False):
    expected = (404, "NotFoundError") if invisible else (403, "NoAccessError")
    return response.status_code == expected[0] and response.json()["name"] == expected[1]


def test_every_write_is_in_the_table():
    writes = {
        (method.upper(), str(route))
        for method, route in calls(list(ROUTES.values()), ("post", "put", "patch", "delete"))
        if (method, str(route)) not in HARMLESS
    }
    assert writes - {(method, address) for method, address, _ in ROWS} == set()


@pytest.mark.exhaustive
@in_batches("rows", ROWS, name_row)
def test_operation(world, holder, rows):
    for row in rows:
        check_operation(world, holder, *row)


def check_operation(world, holder, method, address, needed):
    def answer():
        return send(holder.client, method.lower(), ROUTES[address], world)

    operation, sufficient = f"{method} {address}", alternatives(needed)
    for permissions in sufficient:
        holder.hold(permissions)
        assert not is_refused(answer()), f"{operation}: {permissions} is not enough"
        for missing in permissions if len(sufficient) == 1 else ():
            holder.hold(set(Permission) - {missing, Permission.ADMIN})
            assert is_refused(answer()), f"{operation}: possible without {missing}"
    held = set(Permission) - set().union(*sufficient) - {Permission.ADMIN}
    holder.hold(held)
    is_invisible = address.startswith(INVISIBLE) and not held & set(READERS)
    assert is_refused(answer(), invisible=is_invisible), operation
    holder.hold({Permission.ADMIN})
    assert not is_refused(answer()), operation
    if {permission.scope for permission in sufficient[0]} == {Scope.ENVIRONMENT}:
        holder.hold(sufficient[0], environment="development")
        assert is_refused(answer()), f"{operation}: with a right in another environment"
        holder.hold(sufficient[0], environment="production")
        assert not is_refused(answer()), f"{operation}: with a right in this environment"
