"""Deleting a project concurrently with every kind of conflicting request.

Each pair runs in both orders, with the first paused before its lock or before its commit. The result must be
the same as if the two had run one after the other, including the error that the second one gets.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.models import ApiToken, ApiTokenProject, Grant, Group
from groups.permissions import BuiltIn
from projects.deletion import execute
from projects.deletion.execute import make_removed_project_document
from projects.models import ContextField, Flag, Project, ProjectEnvironment, ProjectRevision, Segment
from tests.support.cast import client, make_project, make_token, make_user
from tests.support.flags import make_flag
from tests.support.racing import BEFORE_COMMIT, BEFORE_LOCK, race, together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.exhaustive]

P = "/api/admin/projects"


@dataclass(frozen=True)
class Rival:
    """A request, with its status when it comes first (beside that of the deletion) and when it comes second."""

    ask: Callable[[Any], Any]
    first: int
    deletion: int
    second: tuple[int, ...] = (404,)


def import_flag(api):
    body = {"features": [{"name": "menu"}], "featureStrategies": [], "tagTypes": []}
    return api.post(
        "/api/admin/features-batch/import",
        {"project": "legacy", "environment": "development", "data": body},
    )


def user_id():
    from groups.models import User

    return User.objects.get(username="guest").pk


BOTH = (400, 404)  # named in a body it is 400; found missing under the lock it is 404
RIVALS = {
    "create a flag": Rival(lambda api: api.post(f"{P}/legacy/features", {"name": "menu"}), 201, 403),
    "revive a flag": Rival(lambda api: api.post(f"{P}/legacy/revive", {"features": ["old"]}), 200, 403),
    "move a flag into it": Rival(
        lambda api: api.post(f"{P}/default/features/guest/changeProject", {"newProjectId": "legacy"}),
        200,
        403,
        BOTH,
    ),
    "import a flag": Rival(import_flag, 200, 403, BOTH),
    "grant a role": Rival(
        lambda api: api.put(f"{P}/legacy/users/{user_id()}/roles", {"roles": [BuiltIn.MEMBER]}), 204, 200
    ),
    "create a token": Rival(
        lambda api: api.post(
            "/api/admin/api-tokens",
            {"tokenName": "t", "type": "backend", "environment": "development", "projects": ["legacy"]},
        ),
        201,
        200,
        BOTH,
    ),
    "create a token for two projects": Rival(
        lambda api: api.post(
            "/api/admin/api-tokens",
            {
                "tokenName": "t",
                "type": "backend",
                "environment": "development",
                "projects": ["legacy", "default"],
            },
        ),
        201,
        200,
        BOTH,
    ),
    "delete it too": Rival(lambda api: api.delete(f"{P}/legacy"), 200, 404),
    "archive it": Rival(lambda api: api.post(f"{P}/archive/legacy", {}), 200, 200),
    "change its settings": Rival(lambda api: api.put(f"{P}/legacy/settings", {"featureLimit": 5}), 200, 200),
    "give it a segment": Rival(
        lambda api: api.post("/api/admin/segments", {"name": "vip", "constraints": [], "project": "legacy"}),
        201,
        200,
        BOTH,
    ),
    "give it a context field": Rival(
        lambda api: api.post(f"{P}/legacy/context", {"name": "tier"}), 201, 200, BOTH
    ),
    "give it an environment": Rival(
        lambda api: api.post(f"{P}/legacy/environments", {"environment": "staging"}), 200, 200
    ),
    "delete one of its flags": Rival(
        lambda api: api.post(f"{P}/legacy/delete", {"features": ["old"]}), 200, 200
    ),
}


@pytest.fixture
def legacy():
    from projects.models import Environment

    make_project("legacy")
    Environment.objects.create(name="staging", type="test")
    make_flag("old", "legacy", archived=True)
    make_flag("guest", "default")
    make_user("guest")
    return make_token("personal", user=make_user("chief", root_role=BuiltIn.ADMIN))


@pytest.mark.parametrize("stop", [BEFORE_LOCK, BEFORE_COMMIT])
@pytest.mark.parametrize("deletion_starts", [True, False], ids=["deletion starts", "rival starts"])
@pytest.mark.parametrize("name", RIVALS)
def test_it_ends_as_if_one_came_after_the_other(legacy, name, deletion_starts, stop):
    rival = RIVALS[name]
    calls = [lambda: client(legacy).delete(f"{P}/legacy"), lambda: rival.ask(client(legacy))]
    first, second = calls if deletion_starts else calls[::-1]
    answers = race(first, second, stop=stop)
    deleted, asked = answers if deletion_starts else answers[::-1]
    # Whoever stops before its lock is overtaken; whoever stops before its commit is waited for.
    deletion_won = deletion_starts == (stop == BEFORE_COMMIT)
    told = (deleted.status_code, asked.status_code, asked.content)
    if deletion_won:
        assert deleted.status_code == 200, told
        assert asked.status_code in rival.second, told
    else:
        assert (deleted.status_code, asked.status_code) == (rival.deletion, rival.first), told
    if 200 in (deleted.status_code, asked.status_code if name == "delete it too" else None):
        nothing_is_left()
    else:
        assert Flag.objects.active().filter(project="legacy").count() == 1
        assert not AuditEvent.objects.filter(type="project-deleted").exists()


def nothing_is_left():
    assert not Project.objects.filter(pk="legacy").exists()
    for model in (Flag, Grant, ApiTokenProject, Segment, ContextField, ProjectEnvironment, ProjectRevision):
        assert not model._base_manager.filter(project_id="legacy").exists(), model
    assert not ApiToken.objects.exclude(kind="personal").filter(scopes=None).exists()
    assert not ApiToken.objects.filter(all_projects=True).exists()
    assert AuditEvent.objects.filter(type="project-deleted").count() == 1


def test_a_flag_revived_after_the_check_keeps_the_project(legacy, monkeypatch):
    """Plain SQL takes no lock of the project; what such a change revives is not deleted."""

    def revive_and_describe(project):
        [_] = together(lambda: Flag.objects.filter(name="old").update(archived_at=None))
        return make_removed_project_document(project)

    monkeypatch.setattr(execute, "make_removed_project_document", revive_and_describe)
    refused = client(legacy).delete(f"{P}/legacy")
    assert refused.status_code == 403
    assert refused.json()["message"].startswith("1 flag is still active in project legacy: old. Archive it")
    assert list(Flag.objects.active().filter(project="legacy").values_list("name", flat=True)) == ["old"]
    assert not AuditEvent.objects.filter(type__in=["project-deleted", "feature-deleted"]).exists()


@pytest.mark.parametrize("stop", [BEFORE_LOCK, BEFORE_COMMIT])
def test_two_projects_with_one_token(legacy, stop):
    """Each deletion sees what the other took from the token: it ends with its last project, never wider."""
    make_project("depot")
    make_token("backend", projects=["legacy", "depot"], environment="development", name="both")
    answers = race(
        lambda: client(legacy).delete(f"{P}/legacy"), lambda: client(legacy).delete(f"{P}/depot"), stop=stop
    )
    assert [answer.status_code for answer in answers] == [200, 200]
    assert not ApiToken.objects.filter(name="both").exists()


@pytest.mark.parametrize(
    ("grant_starts", "stop"), list(itertools.product([True, False], [BEFORE_LOCK, BEFORE_COMMIT]))
)
def test_a_group_is_deleted_while_it_is_given_a_role(legacy, grant_starts, stop):
    group = Group.objects.create(name="crew")
    calls = [
        lambda: client(legacy).put(f"{P}/legacy/groups/{group.pk}/roles", {"roles": [BuiltIn.MEMBER]}),
        lambda: client(legacy).delete(f"/api/admin/groups/{group.pk}"),
    ]
    answers = race(*(calls if grant_starts else calls[::-1]), stop=stop)
    granted, deleted = answers if grant_starts else answers[::-1]
    assert deleted.status_code == 200, deleted.content
    assert granted.status_code in (204, 404), granted.content
    assert not Grant.objects.filter(group_id=group.pk).exists()


@pytest.mark.parametrize(
    ("use_starts", "stop"), list(itertools.product([True, False], [BEFORE_LOCK, BEFORE_COMMIT]))
)
def test_a_segment_is_deleted_while_a_strategy_takes_it(legacy, use_starts, stop):
    segment = Segment.objects.create(name="vip", constraints=[])
    strategies = f"{P}/default/features/guest/environments/development/strategies"
    calls = [
        lambda: client(legacy).post(strategies, {"name": "default", "segments": [segment.pk]}),
        lambda: client(legacy).delete(f"/api/admin/segments/{segment.pk}"),
    ]
    answers = race(*(calls if use_starts else calls[::-1]), stop=stop)
    used, deleted = answers if use_starts else answers[::-1]
    told = (used.status_code, deleted.status_code)
    assert told in {(200, 409), (400, 204), (404, 204)}, (told, used.content, deleted.content)
    assert Segment.objects.filter(pk=segment.pk).exists() == (told == (200, 409))
