"""Archiving, reviving and deleting one or several flags."""

from projects.models import Flag, FlagEnvironment, LifecycleStage
from tests.support.cast import make_project
from tests.support.flags import add_strategy, depend, make_flag, switch_on
from tests.support.records import events, refused

SHOP = "/api/admin/projects/shop"


def post(client, verb, *names):
    return client.post(f"{SHOP}/{verb}", {"features": list(names)}, format="json")


def archived():
    return sorted(Flag.objects.filter(archived_at__isnull=False).values_list("name", flat=True))


def test_archiving_one(api, shop):
    flag = make_flag("cart")
    response = api["member"].delete(f"{SHOP}/features/cart")
    assert (response.status_code, response.content) == (202, b"")
    assert archived() == ["cart"]
    assert flag.lifecycle.get().stage == LifecycleStage.Stage.ARCHIVED
    assert [event.feature for event in events("feature-archived")] == ["cart"]
    refused(api["member"].delete(f"{SHOP}/features/cart"), 404, "NotFoundError")


def test_a_parent_goes_only_with_its_children(api, shop):
    depend(make_flag("child"), make_flag("parent"))
    record = refused(post(api["member"], "archive", "parent"), 403, "InvalidOperationError")
    assert record["details"] == [{"path": "parent", "message": "child depends on it"}]
    refused(api["member"].delete(f"{SHOP}/features/parent"), 403, "InvalidOperationError")
    assert archived() == []
    assert post(api["member"], "archive", "parent", "child").status_code == 202
    assert archived() == ["child", "parent"]


def test_whoever_may_not_see_a_flag_does_not_learn_of_it(api, shop):
    make_flag("a")
    make_flag("far", make_project("other"))
    record = refused(post(api["member"], "archive", "a", "far"), 403, "InvalidOperationError")
    assert record["details"] == [{"path": "far", "message": "there is no such flag"}]
    assert archived() == []


def test_reviving_switches_off_everywhere_and_needs_room(api, shop):
    flag = make_flag("cart")
    add_strategy(flag)
    switch_on(flag)
    post(api["member"], "archive", "cart")
    assert post(api["member"], "revive", "cart").status_code == 200
    assert archived() == []
    assert not FlagEnvironment.objects.filter(enabled=True).exists()
    assert not flag.lifecycle.filter(stage="archived").exists()
    assert [event.feature for event in events("feature-revived")] == ["cart"]

    make_flag("old", archived=True)
    shop.flag_limit = 1
    shop.save()
    refused(post(api["member"], "revive", "old"), 403, "InvalidOperationError")
    assert archived() == ["old"]


def test_deleting_frees_names_but_not_that_of_an_active_flags_parent(api, shop):
    make_flag("old", archived=True)
    make_flag("cart")
    assert post(api["member"], "delete", "old").status_code == 200
    assert list(Flag.objects.values_list("name", flat=True)) == ["cart"]
    assert [event.feature for event in events("feature-deleted")] == ["old"]
    response = api["member"].post(f"{SHOP}/features", {"name": "old"}, format="json")
    assert response.status_code == 201

    depend(make_flag("child"), make_flag("parent", archived=True))
    refused(post(api["member"], "delete", "parent"), 403, "InvalidOperationError")


def test_the_archive_lists_what_may_be_seen(api, shop):
    make_flag("old", archived=True)
    make_flag("cart")
    make_flag("far", make_project("other"), archived=True)

    def names(role, path):
        body = api[role].get(path).json()
        return [(flag["name"], flag["project"]) for flag in body["features"]]

    assert names("viewer", "/api/admin/archive/features") == [("far", "other"), ("old", "shop")]
    assert names("reader", "/api/admin/archive/features") == [("old", "shop")]
    assert names("reader", "/api/admin/archive/features/shop") == [("old", "shop")]
    refused(api["reader"].get("/api/admin/archive/features/other"), 404, "NotFoundError")
