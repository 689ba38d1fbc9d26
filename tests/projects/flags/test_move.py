"""Moving a flag to another project."""

import orjson
import pytest

from groups.models import Grant
from groups.permissions import BuiltIn
from projects.models import Flag, ProjectEnvironment, Segment
from projects.revision import read_revisions
from tests.support.cast import make_project
from tests.support.flags import add_strategy, depend, make_flag, switch_on
from tests.support.page_text import page_text
from tests.support.records import events, refused

PATH = "/api/admin/projects/shop/features/cart/changeProject"


@pytest.fixture
def other(people):
    project = make_project("other")
    Grant.objects.create(role_id=BuiltIn.OWNER, project=project, user=people["owner"])
    return project


def move(client, target="other"):
    return client.post(PATH, {"newProjectId": target}, format="json")


def project_of(name):
    return Flag.objects.get(name=name).project_id


def test_everything_comes_along(api, other):
    flag = make_flag("cart")
    add_strategy(flag)
    switch_on(flag)
    before = read_revisions(["shop", "other"])
    assert move(api["owner"]).status_code == 200
    assert project_of("cart") == "other"
    record = api["owner"].get("/api/admin/projects/other/features/cart").json()
    assert record["environments"][0]["enabled"] is True
    [event] = events("feature-project-change")
    assert (event.project, event.before, event.after) == ("other", {"project": "shop"}, {"project": "other"})
    after = read_revisions(["shop", "other"])
    assert all(after[project] > before[project] for project in before)


@pytest.mark.parametrize("who", ["reader", "owner"])
def test_who_may_not_read_the_old_project_does_not_learn_of_it(api, browse, people, other, who, monkeypatch):
    make_flag("cart")
    move(api["owner"])
    Grant.objects.filter(user=people["reader"]).update(project=other)
    reads_both = who == "owner"
    monkeypatch.setattr("projects.history.api.read_settled_id", lambda: 2**62)
    [event] = api[who].get("/api/admin/events", {"type": "feature-project-change"}).json()["events"]
    line = api[who].get("/api/admin/events", {"cursor": 0, "type": "feature-project-change"}).content
    for told in (event, orjson.loads(line)):
        assert (told["preData"], told["project"]) == ({"project": "shop"} if reads_both else {}, "other")
    change = f"/activity/?change={event['id']}"
    for path in ("/activity/", change, "/projects/other/features/cart/", "/"):
        page = page_text(browse(who).get(path))
        assert ("from shop" in page, "to other" in page) == (reads_both, True), path
        assert "shop" not in page or reads_both


def test_to_where_it_is_or_to_nowhere(api, shop, other):
    make_flag("cart")
    assert move(api["owner"], "shop").status_code == 200
    assert events("feature-project-change") == []

    record = refused(move(api["owner"], "nope"), 400, "ValidationError")
    assert record["details"] == [
        {"path": "newProjectId", "message": "Project nope not found. Available: other, shop."}
    ]


def test_the_right_is_needed_in_both_projects(api, people, other):
    make_flag("cart")
    refused(move(api["member"]), 403, "NoAccessError")
    Grant.objects.create(role_id=BuiltIn.MEMBER, project=other, user=people["member"])
    Grant.objects.create(role_id=BuiltIn.OWNER, project=other, user=people["reader"])
    for role in ("member", "reader", "viewer"):
        assert refused(move(api[role]), 403, "NoAccessError")["permissions"] == ["MOVE_FEATURE_TOGGLE"]
    Grant.objects.filter(project=other, user=people["owner"]).update(role=BuiltIn.MEMBER)
    refused(move(api["owner"]), 403, "NoAccessError")
    assert project_of("cart") == "shop"


def test_what_cannot_come_along(api, shop, other):
    flag = make_flag("cart")
    depend(make_flag("child"), flag)
    strategy = add_strategy(flag)
    strategy.segments.add(Segment.objects.create(name="ours", project=shop))
    switch_on(flag, "production")
    ProjectEnvironment.objects.filter(project=other, environment="production").delete()
    record = refused(move(api["owner"]), 403, "InvalidOperationError")
    assert [problem["path"] for problem in record["details"]] == ["dependencies", "segments", "environments"]
    assert project_of("cart") == "shop"


def test_a_full_project(api, other):
    make_flag("cart")
    make_flag("there", other)
    other.flag_limit = 1
    other.save()
    refused(move(api["owner"]), 403, "InvalidOperationError")
