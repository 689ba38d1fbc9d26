"""Somebody who may write, but neither approve, apply nor skip, changes nothing of what guarded production answers.

Every write of the API with valid bodies, and what people try who know how change requests work.
"""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from groups.models import Grant, Role, RolePermission
from groups.permissions import BuiltIn, Permission, Scope
from projects.definitions import read_definitions
from projects.models import Dependency, Flag, FlagEnvironment, ProjectEnvironment, Segment
from releases.derive import find_differing
from tests.flagadmin.security.batches import undone
from tests.flagadmin.security.calls import calls
from tests.flagadmin.security.plan_tricks import PLAN_TRICKS
from tests.flagadmin.security.routes import routes
from tests.flagadmin.security.tricks import TRICKS
from tests.flagadmin.security.valid_bodies import bodies
from tests.flagadmin.security.world import address, build_strategies
from tests.support.cast import client, make_project, make_token, make_user
from tests.support.playground import live_flag

P = Permission
ALL_TRICKS = TRICKS | PLAN_TRICKS
WRITES = calls(routes("api/admin/"), ("post", "put", "patch", "delete"))
NOT_HELD = {
    P.ADMIN,
    P.SKIP_CHANGE_REQUEST,
    P.APPROVE_CHANGE_REQUEST,
    P.APPLY_CHANGE_REQUEST,
    P.UPDATE_PROJECT,
    P.PROJECT_CHANGE_REQUEST_WRITE,
}


@pytest.fixture
def mallory(shop: Any) -> Any:
    """An editor who has every permission in the project but those of change requests and of its settings."""
    role = Role.objects.create(name="everything else", type="custom")
    held = [each for each in Permission if each not in NOT_HELD and each.scope is not Scope.ROOT]
    RolePermission.objects.bulk_create(
        RolePermission(
            role=role,
            permission=each.value,
            environment_id=place if each.scope is Scope.ENVIRONMENT else None,
        )
        for each in held
        for place in (("development", "production") if each.scope is Scope.ENVIRONMENT else (None,))
    )
    user = make_user("mallory", root_role=BuiltIn.EDITOR)
    Grant.objects.create(user=user, role=role, project_id="shop")
    return user


@pytest.fixture
def attacker(mallory: Any) -> Any:
    return client(make_token("personal", user=mallory, seen_at=timezone.now()))


def guard() -> None:
    ProjectEnvironment.objects.filter(project="shop", environment="production").update(required_approvals=1)


def answers() -> Any:
    return read_definitions(["shop"], "production")


# Every operation --------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
@pytest.mark.parametrize("enabled", [True, False], ids=["on", "off"])
def test_no_operation_changes_an_answer(attacker: Any, shop: Any, enabled: bool) -> None:
    world = build_strategies(shop)
    FlagEnvironment.objects.filter(flag__archived_at=None).update(enabled=enabled)
    Dependency.objects.all().delete()
    guard()
    before = answers()
    outcomes = [
        (f"{method} {route}", outcome(attacker, method, address(route, world), body, before))
        for method, route in WRITES
        for body in bodies(method, route, world)
    ]
    assert [operation for operation, said in outcomes if said == "changed"] == []
    assert len({operation for operation, said in outcomes if said == "refused"}) >= (10 if enabled else 2)
    assert len(outcomes) > 60


def outcome(caller: Any, method: str, url: str, body: Any, before: Any) -> str:
    with undone():
        response = getattr(caller, method)(url, body)
        changed = response.status_code < 400 and any(map(bool, find_differing(before, answers())))
    if response.status_code == 403 and "SKIP_CHANGE_REQUEST" in response.json().get("permissions", []):
        return "refused"
    return "changed" if changed else "kept" if response.status_code < 400 else "rejected"


# What people try --------------------------------------------------------------------------------------------


@pytest.fixture
def cart(shop: Any) -> Flag:
    """On for 10 % in production, with a segment of all projects."""
    segment = Segment.objects.create(name="beta", constraints=[])
    make_project("open")
    parameters = {"rollout": "10", "stickiness": "default", "groupId": "cart"}
    strategies = [
        {"name": "flexibleRollout", "parameters": parameters},
        {"name": "default", "segments": [segment], "sort_order": 1},
    ]
    flag = live_flag("cart", strategies=strategies)
    live_flag("off-flag", enabled=False, strategies=[{"name": "default"}])
    guard()
    return flag


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("trick", ALL_TRICKS)
def test_no_trick_changes_an_answer(attacker: Any, mallory: Any, cart: Flag, trick: str) -> None:
    before = answers()
    browser = Client()
    browser.force_login(mallory)
    ALL_TRICKS[trick](attacker, browser)
    assert not any(find_differing(before, answers())), trick
    guarded = ProjectEnvironment.objects.get(project="shop", environment="production")
    assert guarded.required_approvals == 1
