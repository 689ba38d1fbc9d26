"""Flags with several parents: a request removes one of them, and leaves the others."""

import random
from typing import Any

import pytest

from flagadmin.core.errors import InvalidOperation
from groups.access import Caller
from projects.models import Dependency, Flag
from releases.derive import ProposedChange
from releases.models import ChangeRequest
from releases.requests.propose import NOTHING_LEFT, add_changes, send_changes
from tests.support.change_requests import REQUESTS, enter, guarded, propose, sent
from tests.support.examples import examples
from tests.support.playground import live_flag

SHOP = "/api/admin/projects/shop"
PARENTS = ("base", "core", "root", "stem")
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def child(api: Any, shop: Any) -> Flag:
    """On, in a guarded environment, with two of four possible parents."""
    guarded(0)
    for name in PARENTS:
        live_flag(name)
    flag = live_flag("cart")
    depend(flag, "base", "core")
    return flag


def depend(child: Flag, *parents: str) -> None:
    Dependency.objects.filter(flag=child).delete()
    for name in parents:
        Dependency.objects.create(flag=child, parent=Flag.objects.get(name=name))


def parents_of(child: Flag) -> dict[str, Any]:
    rows = Dependency.objects.filter(flag=child).order_by("parent__name")
    return {row.parent.name: (row.enabled, row.variants) for row in rows.select_related("parent")}


def remove(parent: str) -> dict[str, Any]:
    return {"feature": "cart", "action": "deleteDependency", "payload": {"feature": parent}}


def add(parent: str, **more: Any) -> dict[str, Any]:
    return {"feature": "cart", "action": "addDependency", "payload": {"feature": parent, **more}}


def body_with(*parents: str) -> dict[str, Any]:
    """An import of the flag with these parents."""
    return {
        "project": "shop",
        "environment": "production",
        "data": {
            "features": [{"name": "cart", "type": "release"}],
            "featureStrategies": [{"name": "default", "featureName": "cart"}],
            "featureEnvironments": [{"featureName": "cart", "name": "cart", "enabled": True}],
            "tagTypes": [],
            "dependencies": [{"feature": "cart", "dependencies": [{"feature": name} for name in parents]}],
        },
    }


def test_one_of_two_is_removed_and_comes_back(api, child):
    made = sent(api["admin"], remove("core"))
    assert enter(api["admin"], made, "Applied").status_code == 200
    assert [*parents_of(child)] == ["base"]
    revert = api["admin"].post(f"{REQUESTS}/{made['id']}/revert").json()
    assert enter(api["admin"], revert, "Applied").status_code == 200
    assert [*parents_of(child)] == ["base", "core"]


def test_without_a_parent_all_are_removed(api, child):
    made = sent(api["admin"], {"feature": "cart", "action": "deleteDependency"})
    assert enter(api["admin"], made, "Applied").status_code == 200
    assert parents_of(child) == {}


def test_changes_of_other_parents_stand_beside_each_other(api, child):
    made = propose(api["admin"], remove("core"), add("root"), add("root", enabled=False))
    [feature] = made["features"]
    assert [(change["action"], change["payload"]["feature"]) for change in feature["changes"]] == [
        ("deleteDependency", "core"),
        ("addDependency", "root"),
    ]
    made = propose(api["admin"], {"feature": "cart", "action": "deleteDependency"})
    assert [change["action"] for change in made["features"][0]["changes"]] == ["deleteDependency"]


def test_what_the_draft_added_is_taken_out_of_it(api, child):
    propose(api["admin"], add("root"))
    assert propose(api["admin"], remove("root"))["features"] == []
    assert not ChangeRequest.objects.exists()


def test_one_that_it_does_not_have_is_refused(api, child):
    refused = api["admin"].post(
        f"{SHOP}/environments/production/change-requests", remove("root"), format="json"
    )
    assert refused.status_code == 400
    assert "cart does not depend on root." in refused.json()["message"]


def test_an_import_without_one_of_them_is_a_request_for_that(api, child):
    answer = api["owner"].post("/api/admin/features-batch/import", body_with("base"), format="json")
    assert answer.status_code == 200, answer.json()
    made = answer.json()["changeRequest"]
    shown = api["owner"].get(f"{REQUESTS}/{made['id']}").json()
    [feature] = shown["features"]
    changes = [(change["action"], change["payload"]) for change in feature["changes"]]
    assert (changes, made["changes"]) == ([("deleteDependency", {"feature": "core"})], 1)


def test_random_parents_become_others_by_request_and_come_back(api, child):
    chance = random.Random(7)
    for number in range(examples(40)):
        old, new = (chance.sample(PARENTS, chance.randrange(5)) for _ in range(2))
        depend(child, *old)
        before = parents_of(child)
        answer = api["owner"].post("/api/admin/features-batch/import", body_with(*new), format="json")
        assert answer.status_code == 200, (number, old, new, answer.content)
        if set(old) == set(new):
            assert not answer.content, (number, answer.content)
            continue
        request = {"id": answer.json()["changeRequest"]["id"]}
        for who, state in (("owner", "In review"), ("admin", "Applied")):
            assert enter(api[who], request, state).status_code == 200
        assert set(parents_of(child)) == set(new), (number, old, new)
        revert = api["admin"].post(f"{REQUESTS}/{request['id']}/revert").json()
        assert enter(api["admin"], revert, "Applied").status_code == 200, (number, old, new)
        assert parents_of(child) == before, (number, old, new)


def test_a_request_for_nothing_is_never_made(child):
    there_and_back = [
        ProposedChange("cart", change["action"], change["payload"])
        for change in (add("root"), remove("root"))
    ]
    for propose_them in (add_changes, send_changes):
        with pytest.raises(InvalidOperation, match=NOTHING_LEFT):
            propose_them("shop", "production", there_and_back, caller=Caller.system())
    assert not ChangeRequest.objects.exists()
