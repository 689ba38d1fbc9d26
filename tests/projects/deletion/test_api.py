"""DELETE of a project: what blocks it, and what it deletes."""

import json

import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from flagadmin.core.errors import InvalidOperation
from groups.models import ApiToken, ApiTokenProject, Grant, Group
from groups.permissions import BuiltIn
from groups.tokens import hash_secret
from projects.deletion.execute import delete_project
from projects.deletion.plan import find_blockers, plan_project_deletion
from projects.models import (
    VERSIONS,
    ContextField,
    Dependency,
    FavoriteFlag,
    FavoriteProject,
    FlagLastSeen,
    FlagLink,
    FlagTag,
    LifecycleStage,
    ProjectRevision,
    Segment,
    StrategySegment,
)
from tests.support.cast import client, make_project, make_token
from tests.support.flags import add_strategy, make_flag
from tests.support.for_each import for_each
from tests.support.records import events, refused

URL = "/api/admin/projects"


def furnish(project_id, people, *, flags=("old-a", "old-b"), archived=True):
    """A project with one of everything in it."""
    segment = Segment.objects.create(name=f"{project_id}-vip", project_id=project_id, constraints=[])
    ContextField.objects.create(name=f"{project_id}-tier", project_id=project_id)
    FavoriteProject.objects.create(project_id=project_id, user=people["viewer"])
    made = [make_flag(f"{project_id}-{name}", project_id, enabled=True, archived=archived) for name in flags]
    for flag in made:
        strategy = add_strategy(flag, name="flexibleRollout", parameters={"rollout": "50"})
        StrategySegment.objects.create(strategy=strategy, segment=segment)
        FlagTag.objects.create(flag=flag, tag_type_id="simple", value="web")
        FlagLink.objects.create(flag=flag, url="https://example.com/1")
        FlagLastSeen.objects.create(flag=flag, environment="development", seen_at=timezone.now())
        LifecycleStage.objects.create(flag=flag, stage="initial", entered_at=timezone.now())
        FavoriteFlag.objects.create(flag=flag, user=people["viewer"])
    for child, parent in zip(made[1:], made, strict=False):
        Dependency.objects.create(flag=child, parent=parent)
    group = Group.objects.create(name=f"{project_id}-crew")
    Grant.objects.create(role_id=BuiltIn.MEMBER, project_id=project_id, group=group)
    return made


def rows():
    """How many rows every table of the product has. Events and versions, which stay, aside."""
    tables = {*apps.get_app_config("projects").get_models(), *apps.get_app_config("groups").get_models()}
    return {model.__name__: model._base_manager.count() for model in tables - {*VERSIONS.values()}}


def test_nothing_of_it_is_left(api, people):
    api["admin"]
    before = rows()
    make_project("legacy")
    furnish("legacy", people)
    make_token("backend", projects=["legacy"], environment="development")
    secret = make_token("personal", user=people["admin"], name="laptop")
    response = client(secret).delete(f"{URL}/legacy")
    assert (response.status_code, response.content) == (200, b"")
    kept = {"ApiToken": 1, "Group": 1}
    assert rows() == {name: count + kept.get(name, 0) for name, count in before.items()}
    assert not ProjectRevision.objects.filter(project_id="legacy").exists()


def test_other_projects_keep_everything(api, people):
    furnish("shop", people, archived=False)
    api["admin"]
    before = rows()
    make_project("legacy")
    furnish("legacy", people)
    assert api["admin"].delete(f"{URL}/legacy").status_code == 200
    assert rows() == before | {"Group": before["Group"] + 1}


@pytest.fixture
def legacy(people):
    make_project("legacy")
    return furnish("legacy", people)


def test_every_event_has_what_was_lost(api, legacy, people):
    make_token("frontend", projects=["legacy"], environment="development", name="web")
    make_token("backend", projects=["legacy", "shop"], environment="production", name="both")
    assert api["admin"].delete(f"{URL}/legacy").status_code == 200
    told = events("feature-deleted", "api-token-deleted", "api-token-updated", "project-deleted")
    assert [(event.type, event.feature or event.subject) for event in told] == [
        ("feature-deleted", "legacy-old-a"),
        ("feature-deleted", "legacy-old-b"),
        ("api-token-deleted", "web"),
        ("api-token-updated", "both"),
        ("project-deleted", "legacy"),
    ]
    assert {event.project for event in told} == {"legacy"}
    assert {event.actor_name for event in told} == {"admin"}
    assert len({event.request_id for event in told}) == 1
    flag, project = told[1].before, told[-1].before
    places = {place["name"]: place for place in flag["environments"]}
    assert places["production"] == {"name": "production", "enabled": False, "variants": [], "strategies": []}
    place = places["development"]
    (strategy,) = place.pop("strategies")
    assert place == {"name": "development", "enabled": True, "variants": []}
    assert strategy["parameters"] == {"rollout": "50"}
    assert len(strategy["segments"]) == 1
    assert flag["dependencies"] == [{"feature": "legacy-old-a", "enabled": True, "variants": []}]
    assert flag["tags"] == [{"type": "simple", "value": "web"}]
    assert flag["archivedAt"].endswith("Z")
    assert told[3].after["projects"] == ["shop"]
    assert project["access"] == [{"role": "Member", "group": "legacy-crew"}]
    assert [segment["name"] for segment in project["segments"]] == ["legacy-vip"]


# Tokens ---------------------------------------------------------------------------------------------------


def test_tokens_never_reach_more_than_before_and_no_secret_is_told(api, legacy):
    own = make_token("backend", projects=["legacy"], environment="development")
    both = make_token("backend", projects=["legacy", "shop"], environment="development")
    other = make_token("backend", projects=["shop"], environment="development")
    every = make_token("backend", environment="development")
    assert api["admin"].delete(f"{URL}/legacy").status_code == 200
    assert client(own).get("/api/client/features").status_code == 401
    scopes = {
        secret: (token.all_projects, list(token.scopes.values_list("project_id", flat=True)))
        for secret in (both, other, every)
        for token in [ApiToken.objects.get(secret_hash=hash_secret(secret))]
    }
    assert scopes == {both: (False, ["shop"]), other: (False, ["shop"]), every: (True, [])}

    told = json.dumps([event.before for event in events("api-token-deleted")])
    assert own not in told
    assert hash_secret(own) not in told


def test_a_token_that_loses_its_last_project_in_two_deletions_goes(api, legacy):
    make_project("depot")
    make_token("backend", projects=["legacy", "depot"], environment="development", name="both")
    api["admin"].delete(f"{URL}/legacy")
    assert ApiToken.objects.filter(name="both").exists()
    api["admin"].delete(f"{URL}/depot")
    assert not ApiToken.objects.filter(name="both").exists()
    assert not ApiTokenProject.objects.exists()


# Refusals -------------------------------------------------------------------------------------------------


def test_active_flags_stand_against_it(api, legacy):
    make_flag("menu", "legacy")
    make_flag("banner", "legacy")
    admin, before = api["admin"], rows()
    record = refused(admin.delete(f"{URL}/legacy"), 403, "InvalidOperationError")
    assert "2 flags are still active in project legacy: banner, menu" in record["message"]
    assert record["details"] == [
        {"path": "banner", "message": "is still active"},
        {"path": "menu", "message": "is still active"},
    ]
    assert rows() == before
    assert events("feature-deleted", "project-deleted") == []


def test_a_live_flag_elsewhere_that_depends_on_one_stands_against_it(api, legacy):
    Dependency.objects.create(flag=make_flag("cart"), parent=legacy[0])
    admin, before = api["admin"], rows()
    record = refused(admin.delete(f"{URL}/legacy"), 403, "InvalidOperationError")
    assert "cart" in record["message"]
    assert "legacy-old-a" in record["message"]
    assert [error.message for error in find_blockers(legacy[0].project).errors] == [record["message"]]
    assert rows() == before


def test_an_archived_flag_elsewhere_loses_its_parent(api, legacy):
    child = make_flag("old-cart", archived=True)
    Dependency.objects.create(flag=child, parent=legacy[0])
    assert api["admin"].delete(f"{URL}/legacy").status_code == 200
    assert not child.parents.exists()


def test_a_flag_elsewhere_with_one_of_its_segments_stands_against_it(api, legacy):
    strategy = add_strategy(make_flag("cart"))
    StrategySegment.objects.create(strategy=strategy, segment=Segment.objects.get(name="legacy-vip"))
    record = refused(api["admin"].delete(f"{URL}/legacy"), 403, "InvalidOperationError")
    assert record["details"] == [{"path": "legacy-vip", "message": "cart uses it"}]
    assert len(find_blockers(legacy[0].project).errors) == 1


def test_the_default_project_stays(api):
    record = refused(api["admin"].delete(f"{URL}/default"), 403, "InvalidOperationError")
    assert record["message"] == "The default project cannot be deleted."


@for_each("project", ["nope", "Legacy", "a%2Fb", "*", "..", "x" * 300, "日本"])
def test_an_unknown_project(api, legacy, project):
    refused(api["admin"].delete(f"{URL}/{project}"), 404, "NotFoundError")


# Cost -----------------------------------------------------------------------------------------------------


def statements(project_id, caller):
    with CaptureQueriesContext(connection) as captured:
        delete_project(project_id, caller=caller)
    return len(captured)


def test_the_number_of_statements_does_not_grow(people, callers):
    for project, flags in (("few", 2), ("many", 40)):
        make_project(project)
        furnish(project, people, flags=[f"f{n}" for n in range(flags)])
        for number in range(flags):
            make_token("backend", projects=[project], environment="development", name=f"t{number}")
    few = statements("few", callers("admin"))
    assert statements("many", callers("admin")) == few
    assert few <= 63


# Plan -----------------------------------------------------------------------------------------------------


def test_the_plan_names_what_is_lost(legacy, callers, people):
    Grant.objects.create(role_id=BuiltIn.OWNER, project_id="legacy", user=people["member"])
    make_token("backend", projects=["legacy"], environment="development", name="own")
    make_token("backend", projects=["legacy", "shop"], environment="development", name="both")
    plan = plan_project_deletion("legacy", caller=callers("viewer"))
    assert not plan.blocked
    assert plan.archived == ["legacy-old-a", "legacy-old-b"]
    assert plan.deleted_tokens == ["own (development)"]
    assert plan.narrowed_tokens == ["both (development)"]
    assert [(a.name, a.role) for a in plan.groups] == [("legacy-crew", "Member")]
    assert [(a.name, a.role) for a in plan.people] == [("member", "Owner")]
    assert (plan.segments, plan.context_fields) == (["legacy-vip"], ["legacy-tier"])


@for_each("archived", [True, False])
def test_the_plan_and_the_deletion_agree(people, callers, archived):
    make_project("legacy")
    furnish("legacy", people, archived=archived)
    plan = plan_project_deletion("legacy", caller=callers("admin"))
    assert plan.blocked is not archived
    if plan.blocked:
        with pytest.raises(InvalidOperation):
            delete_project("legacy", caller=callers("admin"))
    else:
        delete_project("legacy", caller=callers("admin"))
    assert plan_project_deletion("default", caller=callers("admin")).blocked
