"""What others have changed since: kept on top of theirs, removed, and never applied twice."""

from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import AppError
from groups.access import Caller
from projects.models import ProjectEnvironment, Strategy
from projects.strategies.actions import remove_strategy, update_strategy
from releases.derive import ProposedChange
from releases.models import ChangeRequest
from releases.requests.propose import add_changes, keep_change, propose_once, remove_change
from releases.requests.states import set_state
from tests.support.cast import make_user
from tests.support.change_requests import REQUESTS, enter, propose, sent, turn
from tests.support.page_text import page_text
from tests.support.playground import live_flag
from tests.support.racing import together

pytestmark = pytest.mark.django_db(transaction=True)
THEIRS = {"parameters": {"rollout": "66", "stickiness": "default", "groupId": "cart"}}


@pytest.fixture
def strategy(shop: Any) -> Strategy:
    """70 % of cart, where changes need one approval."""
    ProjectEnvironment.objects.filter(project="shop", environment="production").update(required_approvals=1)
    parameters = {"rollout": "70", "stickiness": "default", "groupId": "cart"}
    flag = live_flag("cart", strategies=[{"name": "flexibleRollout", "parameters": parameters}])
    return Strategy.objects.get(flag=flag, environment="production")


def edit(strategy: Strategy, **members: Any) -> dict[str, Any]:
    return {"feature": "cart", "action": "updateStrategy", "payload": {"id": str(strategy.pk), **members}}


def change_theirs(strategy: Strategy, **members: Any) -> None:
    """As Lukas, before the environment took requests."""
    lukas = Caller(user=make_user("lukas", root_role=1))
    ProjectEnvironment.objects.update(required_approvals=None)
    update_strategy("shop", "cart", "production", str(strategy.pk), members, caller=lukas)
    ProjectEnvironment.objects.filter(project="shop", environment="production").update(required_approvals=1)


def conflicts(api: Any, made: Any) -> str | None:
    [feature] = api["admin"].get(f"{REQUESTS}/{made['id']}").json()["features"]
    return feature["changes"][0].get("conflict")


def test_the_page_says_who_changed_what_and_keeps_mine_on_top(api, browse, strategy):
    mine = {"name": "flexibleRollout", "title": "Mine", "constraints": [], "parameters": THEIRS["parameters"]}
    sixty = {**mine, "parameters": {**THEIRS["parameters"], "rollout": "60"}}
    made = sent(api["owner"], edit(strategy, **sixty))
    assert enter(api["admin"], made, "Approved").status_code == 200
    country = {"contextName": "country", "operator": "IN", "values": ["NO"]}
    change_theirs(strategy, constraints=[country], **THEIRS)
    assert (conflicts(api, made) or "").startswith("lukas changed it at ")
    shown = browse("admin").get(f"/projects/shop/change-requests/{made['id']}/")
    assert shown.context["steps"]
    assert shown.context["main_step"] is None, "nobody is invited to apply what is in conflict"
    page = page_text(browse("owner").get(f"/projects/shop/change-requests/{made['id']}/"))
    assert "Rollout was 70 % then and is 66 % now. This request sets 60 %." in page
    assert "Keep this change (replaces theirs)" in page

    [change] = ChangeRequest.objects.get().changes.all()
    browse("owner").post(f"/projects/shop/change-requests/{made['id']}/keep", {"change": change.pk})
    assert conflicts(api, made) is None
    assert ChangeRequest.objects.get().state == "In review"
    assert not ChangeRequest.objects.get().reviews.exists()
    for state in ("Approved", "Applied"):
        assert enter(api["admin"], made, state).status_code == 200
    strategy.refresh_from_db()
    assert (strategy.parameters["rollout"], strategy.title) == ("60", "Mine")
    assert [each["contextName"] for each in strategy.constraints] == ["country"]


def test_what_is_gone_cannot_be_kept(api, browse, strategy):
    made = sent(api["owner"], edit(strategy, title="Mine"))
    ProjectEnvironment.objects.update(required_approvals=None)
    remove_strategy("shop", "cart", "production", str(strategy.pk), caller=Caller.system())
    page = page_text(browse("owner").get(f"/projects/shop/change-requests/{made['id']}/"))
    assert "Remove this change" in page
    assert "Keep this change (replaces theirs)" not in page
    [change] = ChangeRequest.objects.get().changes.all()
    with pytest.raises(AppError):
        keep_change("shop", made["id"], change.pk, caller=Caller.system())


@pytest.mark.parametrize("who", ["member", "viewer"])
def test_only_its_author_keeps_a_change(api, browse, strategy, who):
    made = sent(api["owner"], edit(strategy, title="Mine"))
    [change] = ChangeRequest.objects.get().changes.all()
    change_theirs(strategy, **THEIRS)
    browse(who).post(f"/projects/shop/change-requests/{made['id']}/keep", {"change": change.pk})
    assert conflicts(api, made)


def test_a_change_back_to_the_start_removes_it_and_the_last_one_the_draft(api, strategy):
    begun = propose(api["owner"], edit(strategy, disabled=True), turn(False))
    left = propose(api["owner"], edit(strategy, disabled=False))
    assert [change["action"] for change in left["features"][0]["changes"]] == ["updateEnabled"]
    made = propose(api["owner"], turn(True))
    assert (made["id"], made["features"], made["segments"]) == (begun["id"], [], [])
    assert not ChangeRequest.objects.exists()
    assert enter(api["owner"], made, "In review").status_code == 404
    events = AuditEvent.objects.filter(subject=f"{begun['id']}").order_by("id")
    assert list(events.values_list("type", flat=True)) == [
        "change-request-created",
        "change-added",
        "change-added",
        "change-discarded",
        "change-discarded",
        "change-request-discarded",
    ]


def put_change(by: Any, made: Any, place: int, change: Any) -> Any:
    key = made["features"][0]["changes"][place]["id"]
    return by.put(f"{REQUESTS}/{made['id']}/changes/{key}", change, format="json")


def test_what_was_proposed_for_a_flag_that_was_deleted_is_not_for_another_of_its_name(api, browse, strategy):
    made = sent(
        api["owner"],
        turn(False),
        edit(strategy, title="Mine"),
        {"feature": "cart", "action": "patchVariant", "payload": {"variants": []}},
    )
    assert enter(api["admin"], made, "Approved").status_code == 200
    page = f"/projects/shop/change-requests/{made['id']}/"
    ProjectEnvironment.objects.update(required_approvals=None)
    for path, body in (("archive", {"features": ["cart"]}), ("delete", {"features": ["cart"]})):
        answer = api["admin"].post(f"/api/admin/projects/shop/{path}", body, format="json")
        assert answer.status_code in (200, 202), answer.json()
    assert browse("owner").get(page).status_code == 200
    live_flag("cart", strategies=[{"name": "default"}])
    assert conflicts(api, made) == (
        "cart has been deleted since this was proposed: this is another flag of that name."
    )
    assert browse("owner").get(page).status_code == 200
    refused = enter(api["admin"], made, "Applied")
    assert refused.status_code == 409
    assert "another flag of that name" in refused.json()["message"]
    [first, *others] = made["features"][0]["changes"]
    for change in others:
        remove_change("shop", made["id"], change["id"], caller=Caller.system())
    keep_change("shop", made["id"], first["id"], caller=Caller.system())
    assert conflicts(api, made) is None


def test_an_edit_replaces_another_change_of_the_same(api, strategy):
    made = propose(api["owner"], turn(False), edit(strategy, disabled=True))
    edited = put_change(api["owner"], made, 0, edit(strategy, title="Ours")).json()
    [change] = edited["features"][0]["changes"]
    assert (change["id"], change["payload"]["title"]) == (made["features"][0]["changes"][0]["id"], "Ours")


def test_a_change_edited_back_to_the_start_is_removed(api, strategy):
    draft = propose(api["owner"], turn(False), edit(strategy, disabled=True))
    left = put_change(api["owner"], draft, 0, turn(True)).json()
    assert [change["action"] for change in left["features"][0]["changes"]] == ["updateStrategy"]
    assert put_change(api["owner"], left, 0, edit(strategy, disabled=False)).json()["features"] == []
    assert not ChangeRequest.objects.exists()


def test_a_sent_request_without_changes_is_cancelled(api, strategy):
    made = sent(api["owner"], turn(False))
    assert put_change(api["owner"], made, 0, turn(True)).json()["state"] == "Cancelled"


def test_two_who_apply_at_once_apply_it_once(strategy):
    admins = [Caller(user=make_user(name, root_role=1)) for name in ("ada", "bob")]
    second = ProposedChange("cart", "addStrategy", {"name": "default", "title": "Second"})
    request = add_changes("shop", "production", [second], caller=admins[0])
    for state, caller in (("In review", admins[0]), ("Approved", admins[1])):
        set_state("shop", request.pk, state, caller=caller)
    outcomes: list[str] = []

    def apply(caller: Caller) -> None:
        try:
            outcomes.append(set_state("shop", request.pk, "Applied", caller=caller).state)
        except AppError as error:
            outcomes.append(error.name)

    together(*[lambda caller=caller: apply(caller) for caller in admins * 2])
    assert sorted(outcomes) == ["Applied", *["ConflictError"] * 3]
    assert Strategy.objects.filter(title="Second").count() == 1


def test_what_turns_a_flag_on_again_that_loses_its_strategies_is_kept(api, strategy):
    loss = {"feature": "cart", "action": "deleteStrategy", "payload": {"id": str(strategy.pk)}}
    made = propose(api["owner"], loss, turn(True))
    edited = turn(True)
    edited["payload"]["shouldActivateDisabledStrategies"] = True
    for kept in (put_change(api["owner"], made, 1, edited).json(), propose(api["owner"], turn(True))):
        actions = [change["action"] for change in kept["features"][0]["changes"]]
        assert actions == ["deleteStrategy", "updateEnabled"]


def test_a_program_that_proposes_again_replaces_its_request_once_that_is_in_conflict(strategy):
    pipeline = Caller(user=make_user("pipeline", root_role=1))
    fifty = ProposedChange(
        "cart", "updateStrategy", edit(strategy, parameters=THEIRS["parameters"])["payload"]
    )

    def propose_again() -> tuple[int, bool]:
        request, is_new = propose_once("shop", "production", [fifty], title="main", caller=pipeline)
        return request.pk, is_new

    first, _ = propose_again()
    assert propose_again() == (first, False)
    change_theirs(strategy, title="Theirs")
    second, is_new = propose_again()
    assert is_new
    assert propose_again() == (second, False)
    states = dict(ChangeRequest.objects.values_list("pk", "state"))
    assert states == {first: "Cancelled", second: "In review"}
