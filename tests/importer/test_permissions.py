"""The permissions needed for each kind of import."""

import json
from typing import Any

import pytest
from django.db import transaction

from flagadmin.core.errors import NoAccess
from groups.access import Caller
from groups.models import Grant, Role, RolePermission, User
from importer.apply.undo import undo_import
from importer.models import ImportRun
from projects.models import Dependency, Flag, FlagEnvironment
from tests.support.cast import client, make_token, make_user
from tests.support.import_bodies import body, strategy, switch
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db
IMPORT = "/api/admin/features-batch/import"
VALIDATE = "/api/admin/features-batch/validate"


@pytest.mark.parametrize("who", ["admin", "owner", "member", "admin_token"])
def test_may_import(who: str, api: Any) -> None:
    assert api[who].post(IMPORT, body("one")).status_code == 200


@pytest.mark.parametrize("who", ["viewer", "reader", "editor"])
def test_sees_and_may_not(who: str, api: Any) -> None:
    response = api[who].post(IMPORT, body("one", featureStrategies=[strategy("one")]))
    record = json.loads(response.content)
    assert (response.status_code, record["name"]) == (403, "NoAccessError")
    assert record["permissions"] == ["CREATE_FEATURE_STRATEGY", "CREATE_FEATURE", "UPDATE_FEATURE"]
    report = json.loads(api[who].post(VALIDATE, body("one")).content)
    assert report["permissions"] == [
        {
            "message": "We detected you are missing the following permissions:",
            "affectedItems": ["Create feature flags", "Update feature flags"],
        }
    ]
    assert not Flag.objects.exists()


def test_who_sees_no_project_learns_of_none(api: Any) -> None:
    response = api["outsider"].post(IMPORT, body("one"))
    record = json.loads(response.content)
    assert response.status_code == 404
    assert record["message"] == "Project shop not found. You cannot see any project."


def test_missing_permissions_come_before_wrong_values(api: Any) -> None:
    assert api["reader"].post(IMPORT, body("not a name")).status_code == 403


NEEDS = {
    "new words": (
        body(
            "one",
            contextFields=[{"name": "tier"}],
            tagTypes=[{"name": "team"}],
            featureTags=[{"featureName": "one", "tagType": "team", "tagValue": "web"}],
            segments=[{"id": 1, "name": "vip", "constraints": []}],
        ),
        ["CREATE_CONTEXT_FIELD", "CREATE_TAG_TYPE", "CREATE_SEGMENT"],
    ),
    "words that are here": (
        body(
            "one",
            contextFields=[{"name": "userId"}],
            tagTypes=[{"name": "unused"}],
            featureTags=[{"featureName": "one", "tagType": "simple", "tagValue": "web"}],
        ),
        [],
    ),
}


@pytest.mark.parametrize(("sent", "missing"), NEEDS.values(), ids=NEEDS)
def test_a_member_needs_root_permissions_for_new_words(sent: Any, missing: list[str], api: Any) -> None:
    response = api["member"].post(IMPORT, sent)
    if missing:
        assert json.loads(response.content)["permissions"] == missing
    else:
        assert response.status_code == 200, response.content


def test_replacing_variants_and_archiving_have_their_own(api: Any, people: Any) -> None:
    from groups.models import Grant, Role, RolePermission

    role = Role.objects.create(name="Careful", type="custom")
    RolePermission.objects.create(role=role, permission="UPDATE_FEATURE")
    Grant.objects.filter(user=people["member"]).update(role=role)
    first = body("one", featureStrategies=[strategy("one")])
    assert api["admin"].post(IMPORT, first).status_code == 200
    variants = [{"name": "a", "weight": 1000, "weightType": "variable", "stickiness": "default"}]
    sent = body(featureEnvironments=[switch("one", enabled=False, variants=variants)])
    sent["data"]["features"] = [{"name": "one", "archived": True}]
    record = json.loads(api["member"].post(IMPORT, sent).content)
    assert record["permissions"] == [
        "DELETE_FEATURE_STRATEGY",
        "UPDATE_FEATURE_ENVIRONMENT_VARIANTS",
        "DELETE_FEATURE",
    ]


@pytest.fixture
def limited(shop: Any) -> Any:
    """A client of somebody who may edit flags, and not what they return: as roles that are limited to environments."""
    user, role = make_user("limited"), Role.objects.create(name="Limited", type="custom")
    kept = ("CREATE_FEATURE", "UPDATE_FEATURE")
    RolePermission.objects.bulk_create(RolePermission(role=role, permission=name) for name in kept)
    Grant.objects.create(role=role, project=shop, user=user)
    return client(make_token("personal", user=user))


PARENTS = [{"feature": "one", "dependencies": [{"feature": "two", "enabled": False}]}]


@pytest.mark.parametrize(
    ("sent", "permission"),
    [
        (
            body(environment="production", featureEnvironments=[switch("one", False)]),
            "UPDATE_FEATURE_ENVIRONMENT",
        ),
        (body("one", "two", dependencies=PARENTS), "UPDATE_FEATURE_DEPENDENCY"),
        (body(dependencies=PARENTS), "UPDATE_FEATURE_DEPENDENCY"),
    ],
)
def test_what_turns_a_flag_off_takes_its_permission(
    sent: Any, permission: str, limited: Any, api: Any
) -> None:
    """As the same change takes it when it is made alone."""
    for name in ("one", "two"):
        live_flag(name)
    before = list(Dependency.objects.all()), FlagEnvironment.objects.filter(enabled=True).count()
    refused = limited.post(IMPORT, sent)
    assert (refused.status_code, refused.json()["permissions"]) == (403, [permission])
    assert before == (list(Dependency.objects.all()), FlagEnvironment.objects.filter(enabled=True).count())
    assert api["member"].post(IMPORT, sent).status_code == 200
    run = ImportRun.objects.get()
    with pytest.raises(NoAccess, match="permission"):
        undo_import(run.pk, caller=Caller(user=User.objects.get(username="limited")))


def test_undoing_turns_a_revived_flag_on_only_where_that_is_allowed(limited: Any, api: Any) -> None:
    role = Role.objects.get(name="Limited")
    for name in ("CREATE_FEATURE_STRATEGY", "DELETE_FEATURE_STRATEGY", "UPDATE_FEATURE_ENVIRONMENT"):
        RolePermission.objects.create(role=role, permission=name, environment_id="development")
    live_flag("one")
    sent = body()
    sent["data"]["features"] = [{"name": "one", "archived": True}]
    assert api["admin"].post(IMPORT, sent).status_code == 200
    run = ImportRun.objects.get()
    with pytest.raises(NoAccess, match=r"\(production\)"), transaction.atomic():
        undo_import(run.pk, caller=Caller(user=User.objects.get(username="limited")))
    assert Flag.objects.get().is_archived
    undo_import(run.pk, caller=Caller(user=User.objects.get(username="member")))
    assert FlagEnvironment.objects.get(environment="production").enabled


def test_undoing_needs_the_permissions_of_its_own_changes(limited: Any, api: Any) -> None:
    """Here to remove one strategy: none is added and none is edited."""
    live_flag("one")
    sent = body(environment="production", featureStrategies=[strategy("one", parameters={"rollout": "10"})])
    assert api["admin"].post(IMPORT, sent).status_code == 200
    run, user = ImportRun.objects.get(), User.objects.get(username="limited")
    with pytest.raises(NoAccess, match='"Delete strategies"'), transaction.atomic():
        undo_import(run.pk, caller=Caller(user=user))
    role = Role.objects.get(name="Limited")
    RolePermission.objects.create(
        role=role, permission="DELETE_FEATURE_STRATEGY", environment_id="production"
    )
    undo_import(run.pk, caller=Caller(user=user))
    assert ImportRun.objects.get().state == ImportRun.State.UNDONE


def test_new_flags_may_have_parents(limited: Any) -> None:
    assert limited.post(IMPORT, body("one", "two", dependencies=PARENTS)).status_code == 200
