"""The API for dependencies between flags."""

import pytest

from projects.models import Dependency
from tests.support.cast import make_project
from tests.support.flags import add_strategy, depend, make_flag
from tests.support.records import events, refused

PATH = "/api/admin/projects/shop/features/child/dependencies"


@pytest.fixture
def flags(shop):
    return {name: make_flag(name) for name in ("child", "parent", "other")}


def add(client, parent="parent", path=PATH, **body):
    return client.post(path, {"feature": parent, **body}, format="json")


def pairs():
    return set(Dependency.objects.values_list("flag__name", "parent__name"))


def test_adding(api, flags):
    response = add(api["member"], variants=["x"])
    assert (response.status_code, response.content) == (200, b"")
    row = Dependency.objects.get()
    assert (row.flag, row.parent, row.enabled, row.variants) == (flags["child"], flags["parent"], True, ["x"])
    [event] = events("feature-dependency-added")
    assert event.after == {"feature": "parent", "enabled": True, "variants": ["x"]}


def test_several_parents_of_which_one_changes(api, flags):
    add(api["member"])
    add(api["member"], "other")
    assert pairs() == {("child", "parent"), ("child", "other")}

    assert add(api["member"], enabled=False, variants=["x"]).status_code == 200
    row = Dependency.objects.get(parent__name="parent")
    assert (row.enabled, row.variants) == (False, [])


def test_flags_that_may_not_be_seen_are_unknown(api, flags):
    make_flag("far", make_project("elsewhere"))
    record = refused(add(api["member"], "far"), 400, "ValidationError")
    assert [problem["path"] for problem in record["details"]] == ["feature"]
    assert "flag far not found" in record["message"]
    assert (
        "must be in the same project" in refused(add(api["admin"], "far"), 400, "ValidationError")["message"]
    )
    refused(add(api["member"], path=PATH.replace("child", "nope")), 404, "NotFoundError")


def test_no_chains_and_no_circles(api, flags):
    depend(flags["parent"], flags["other"])
    refused(add(api["member"], "parent"), 400, "ValidationError")
    parent = PATH.replace("child", "other")
    refused(add(api["member"], "child", parent), 400, "ValidationError")
    record = refused(add(api["member"], "parent", parent), 400, "ValidationError")
    assert "each other" in record["message"]
    assert pairs() == {("parent", "other")}


def test_removing_one_and_all(api, flags):
    depend(flags["child"], flags["parent"])
    depend(flags["child"], flags["other"])
    assert api["member"].delete(f"{PATH}/parent").status_code == 200
    assert pairs() == {("child", "other")}
    refused(api["member"].delete(f"{PATH}/parent"), 404, "NotFoundError")
    assert api["member"].delete(PATH).status_code == 200
    assert pairs() == set()
    assert api["member"].delete(PATH).status_code == 200
    assert [event.before["feature"] for event in events("feature-dependency-removed")] == ["parent", "other"]


def test_which_parents_are_possible(api, flags):
    depend(make_flag("grandchild"), flags["other"])
    make_flag("old", archived=True)
    options = api["reader"].get("/api/admin/projects/shop/features/child/parents").json()
    assert options == ["other", "parent"]
    assert api["reader"].get("/api/admin/projects/shop/features/other/parents").json() == []


def test_the_variants_a_child_could_ask_for_of_flags_that_can_be_parents(api, flags):
    parent = flags["parent"]
    parent.environments.filter(environment="production").update(variants=[{"name": "red"}])
    add_strategy(parent, variants=[{"name": "blue"}, {"name": "red"}])
    path = "/api/admin/projects/shop/features/parent/parent-variants"
    assert api["reader"].get(path).json() == ["blue", "red"]
    refused(api["outsider"].get(path), 404, "NotFoundError")

    for other in ("shop/features/nope", "default/features/parent"):
        answer = api["admin"].get(f"/api/admin/projects/{other}/parent-variants")
        assert (answer.status_code, answer.json()) == (200, []), other
    parent.archived_at = parent.created_at
    parent.save()
    assert api["admin"].get(path).json() == []


def test_whether_a_project_uses_dependencies(api, flags):
    path = "/api/admin/projects/shop/dependencies"
    assert api["reader"].get(path).json() is False
    depend(flags["child"], flags["parent"])
    assert api["reader"].get(path).json() is True
    assert api["viewer"].get("/api/admin/projects/default/dependencies").json() is False
    refused(api["outsider"].get(path), 404, "NotFoundError")
