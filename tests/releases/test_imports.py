"""An import into an environment that takes change requests becomes one, with its preview."""

import re
from typing import Any

import orjson
import pytest

from groups.access import Caller
from groups.models import User
from groups.permissions import BuiltIn
from importer.models import ImportRun
from importer.report import UNPROPOSABLE
from importer.runs import create_run
from projects.models import ContextField, Flag, ProjectEnvironment, Strategy
from releases.models import ChangeRequest
from tests.support.flags import add_strategy
from tests.support.page_text import page_text
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db(transaction=True)


PARAMETERS = {"rollout": "10", "stickiness": "default", "groupId": "cart"}


@pytest.fixture
def body(shop: Any) -> dict[str, Any]:
    """An import with another rollout of cart, which is on in production."""
    live_flag("cart", strategies=[{"name": "flexibleRollout", "parameters": PARAMETERS}])
    ProjectEnvironment.objects.filter(project="shop", environment="production").update(required_approvals=1)
    strategy = {
        "name": "flexibleRollout",
        "featureName": "cart",
        "parameters": PARAMETERS | {"rollout": "50"},
        "constraints": [],
    }
    switch = {"featureName": "cart", "name": "cart", "environment": "x", "enabled": True}
    data = {
        "features": [{"name": "cart", "type": "release"}],
        "featureStrategies": [strategy],
        "featureEnvironments": [switch],
        "tagTypes": [],
    }
    return {"project": "shop", "environment": "production", "data": data}


@pytest.fixture
def run(body: dict[str, Any], people: Any) -> ImportRun:
    return create_run(orjson.dumps(body), caller=Caller(user=people["owner"]), file_name="cart.json")


def test_it_is_sent_for_review_with_its_preview(browse, run):
    owner = browse("owner")
    page = owner.get(f"/import/{run.id}/")
    assert "Send for review" in page.text
    kept = {"fingerprint": run.fingerprint, "do": "confirm"}
    titled = {"request_title": "Import of cart.json", "request_note": f"Plan and preview: /import/{run.id}/"}
    answer = owner.post(f"/import/{run.id}/", {**kept, **titled, "send_for_review": "yes"})
    request = ChangeRequest.objects.get()
    assert answer.url == f"/projects/shop/change-requests/{request.pk}/"
    assert (request.state, request.title) == ("In review", "Import of cart.json")
    assert request.changes.exists()
    assert Strategy.objects.get(flag__name="cart", environment="production").parameters["rollout"] == "10"
    assert f"Plan and preview: /import/{run.id}/" in page_text(owner.get(answer.url))
    run.refresh_from_db()
    assert run.state == ImportRun.State.PENDING


def undone_with_a_policy(browse: Any, run: ImportRun, answer: dict[str, str]) -> Any:
    """The answer to undoing the import, which was made when nothing asked for requests."""
    owner, links = (
        browse("owner"),
        ProjectEnvironment.objects.filter(project="shop", environment="production"),
    )
    links.update(required_approvals=None)
    confirmed = owner.post(f"/import/{run.id}/", {"fingerprint": run.fingerprint, "do": "confirm"})
    assert confirmed.status_code == 302
    links.update(required_approvals=1)
    form = owner.get(f"/import/{run.id}/undo").text
    kept = dict(re.findall(r'name="(request_\w+)" value="([^"]*)"', form))
    return owner.post(f"/import/{run.id}/undo", kept | answer)


def test_its_undo_is_sent_for_review_with_a_link_to_what_is_undone(browse, run):
    answer = undone_with_a_policy(browse, run, {"send_for_review": "yes"})
    request = ChangeRequest.objects.get()
    assert answer.url == f"/projects/shop/change-requests/{request.pk}/"
    assert request.title == "Undo the import of cart.json"
    assert [comment.text.endswith(f"/import/{run.id}/") for comment in request.comments.all()] == [True]


def test_undoing_what_has_created_a_flag_that_is_on_says_to_turn_it_off_first(browse, people, body):
    body["data"]["features"].append({"name": "loud", "type": "release"})
    body["data"]["featureEnvironments"].append({"featureName": "loud", "name": "loud", "enabled": True})
    run = create_run(orjson.dumps(body), caller=Caller(user=people["owner"]))
    page = undone_with_a_policy(browse, run, {})
    assert page.status_code == 403
    assert (
        "it deletes a flag that is on, or moves one. Propose to turn it off in production first." in page.text
    )


def test_the_page_says_what_a_request_cannot_create(browse, people, body):
    body["data"]["features"] += [{"name": "quiet", "type": "release"}, {"name": "loud", "type": "release"}]
    body["data"]["featureEnvironments"].append({"featureName": "loud", "name": "loud", "enabled": True})
    run = create_run(orjson.dumps(body), caller=Caller(user=people["owner"]))
    owner = browse("owner")
    page = owner.get(f"/import/{run.id}/")
    assert f"{UNPROPOSABLE} loud." in page_text(page)
    assert "leaves out the rest of quiet." in page_text(page)
    assert 'value="yes" disabled aria-describedby="unproposable">Send for review' in page.text
    form = page.text.partition('id="exclude-on-at-once"')[2].partition("</form>")[0]
    sent = dict(re.findall(r'name="(do|flag)" value="(\w+)"', form))
    assert sent == {"do": "exclude", "flag": "loud"}

    owner.post(f"/import/{run.id}/", sent)
    assert '<button name="send_for_review" value="yes">' in owner.get(f"/import/{run.id}/").text


def test_what_changes_no_answer_is_imported_not_sent(browse, people, body):
    body["data"] |= {"featureStrategies": [], "featureEnvironments": []}
    body["data"]["features"] = [{"name": "quiet", "type": "release"}]
    run = create_run(orjson.dumps(body), caller=Caller(user=people["owner"]))
    owner = browse("owner")
    page = owner.get(f"/import/{run.id}/")
    assert "Import 1 flag" in page_text(page)
    assert "Send for review" not in page.text
    owner.post(f"/import/{run.id}/", {"fingerprint": run.fingerprint, "do": "confirm"})
    assert Flag.objects.filter(name="quiet").exists()


def test_impression_data_is_proposed_and_not_left_out(api, browse, people, body):
    body["data"]["featureStrategies"][0]["parameters"] = PARAMETERS
    body["data"]["features"][0]["impressionData"] = True
    run = create_run(orjson.dumps(body), caller=Caller(user=people["owner"]))
    page = browse("owner").get(f"/import/{run.id}/").text
    assert ("Send for review" in page, "leaves out the rest" in page) == (True, False)
    assert api["owner"].post(IMPORT, body, format="json").json().keys() == {"changeRequest"}
    [change] = ChangeRequest.objects.get().changes.all()
    assert change.action == "updateImpressionData"


@pytest.mark.parametrize("by_page", [True, False])
@pytest.mark.parametrize("changed", [{"title": "Half of them"}, {"sortOrder": 7}])
def test_what_replaces_a_strategy_by_one_that_answers_the_same_is_imported(
    api, browse, people, body, changed, by_page
):
    body["data"]["featureStrategies"][0] |= {"parameters": PARAMETERS, **changed}
    assert api["owner"].post(VALIDATE, body, format="json").json()["errors"] == []
    if by_page:
        run = create_run(orjson.dumps(body), caller=Caller(user=people["owner"]))
        browse("owner").post(f"/import/{run.id}/", {"fingerprint": run.fingerprint, "do": "confirm"})
    else:
        assert api["owner"].post(IMPORT, body, format="json").content == b""
    assert ImportRun.objects.get().state == ImportRun.State.DONE
    assert not ChangeRequest.objects.exists()
    strategy = Strategy.objects.get()
    assert changed in ({"title": strategy.title}, {"sortOrder": strategy.sort_order})


@pytest.mark.parametrize("title_of", ["the strategy", "a disabled one"])
def test_strategies_that_change_no_answer_are_imported_not_sent(browse, people, body, title_of):
    kept = body["data"]["featureStrategies"][0] | {"parameters": PARAMETERS}
    titled = kept | {"title": "Half of them"}
    changed = [titled] if title_of == "the strategy" else [kept, titled | {"disabled": True}]
    body["data"]["featureStrategies"] = changed
    run = create_run(orjson.dumps(body), caller=Caller(user=people["owner"]))
    page = browse("owner").get(f"/import/{run.id}/")
    assert "Import 1 flag" in page_text(page)
    assert "Send for review" not in page.text


def test_the_page_leads_to_importing_without_a_request(browse, run):
    admin = Caller(user=User.objects.get(username="admin"))
    ImportRun.objects.update(caller_id=admin.id, caller_name=admin.name)
    browser = browse("admin")
    assert "Import without a request…" in browser.get(f"/import/{run.id}/").text
    form = {"fingerprint": run.fingerprint, "do": "confirm", "skip_change_request": "yes"}
    assert browser.post(f"/import/{run.id}/", form).status_code == 403
    browser.post(f"/import/{run.id}/", form | {"comment": "It burns."})
    assert rollout() == "50"


def test_a_long_file_name_fits_into_the_title(browse, run):
    ImportRun.objects.update(file_name="x" * 255)
    title = f"Import of {'x' * 199}…"
    assert f'value="{title}"' in browse("owner").get(f"/import/{run.id}/").text


IMPORT = "/api/admin/features-batch/import"
VALIDATE = "/api/admin/features-batch/validate"


def rollout() -> str:
    return Strategy.objects.get(flag__name="cart", environment="production").parameters["rollout"]


def test_by_api_it_becomes_a_draft(api, body):
    answer = api["owner"].post(IMPORT, body, format="json")
    request = ChangeRequest.objects.get()
    changes = request.changes.count()
    assert (answer.status_code, answer.json()) == (
        200,
        {"changeRequest": {"id": request.pk, "state": "Draft", "changes": changes}},
    )
    assert (request.author_name, request.environment_id, rollout()) == ("owner", "production", "10")
    assert not ImportRun.objects.exists()
    assert api["viewer"].post(IMPORT, body, format="json").status_code == 403


def apply_draft(api: Any, number: int) -> list[str]:
    """The actions of the request, once it has been applied."""
    url = f"/api/admin/projects/shop/change-requests/{number}/state"
    for who, state in (("owner", "In review"), ("admin", "Approved"), ("admin", "Applied")):
        answer = api[who].put(url, {"state": state}, format="json")
        assert answer.status_code == 200, answer.json()
    return [change.action for change in ChangeRequest.objects.get(pk=number).changes.order_by("id")]


def in_production() -> tuple[bool, list[tuple[str, str | None]]]:
    """Whether cart is on, and the types and rollouts of its strategies."""
    flag = Flag.objects.get(name="cart")
    rows = flag.strategies.filter(environment="production").order_by("sort_order")
    strategies = [(row.name, row.parameters.get("rollout")) for row in rows]
    return flag.environments.get(environment="production").enabled, strategies


def propose(api: Any, body: dict[str, Any]) -> list[str]:
    answer = api["owner"].post(IMPORT, body, format="json").json()
    return apply_draft(api, answer["changeRequest"]["id"])


def test_a_strategy_that_is_imported_again_is_changed(api, body):
    key = Strategy.objects.get().pk
    assert propose(api, body) == ["updateStrategy"]
    assert in_production() == (True, [("flexibleRollout", "50")])
    assert Strategy.objects.get().pk == key


def test_a_strategy_of_another_type_replaces_it_while_the_flag_stays_on(api, body):
    body["data"]["featureStrategies"][0].update(name="default", parameters={})
    assert propose(api, body) == ["addStrategy", "deleteStrategy"]
    assert in_production() == (True, [("default", None)])


def test_equal_strategies_stay_and_another_is_added(api, body):
    same = body["data"]["featureStrategies"][0] | {"parameters": PARAMETERS}
    body["data"]["featureStrategies"].append(same)
    assert propose(api, body) == ["addStrategy", "reorderStrategy"]
    assert in_production()[1] == [("flexibleRollout", "50"), ("flexibleRollout", "10")]


def list_strategies(*names: str) -> list[dict[str, Any]]:
    """In this order, in a file."""
    return [
        {"name": name, "featureName": "cart", "parameters": PARAMETERS if name == "flexibleRollout" else {}}
        | {"sortOrder": place, "constraints": []}
        for place, name in enumerate(names)
    ]


@pytest.mark.parametrize(
    ("stored", "imported"),
    [
        (["flexibleRollout"], ["default", "flexibleRollout"]),
        (["flexibleRollout", "default"], ["flexibleRollout", "remoteAddress", "default"]),
        (["flexibleRollout", "default"], ["default", "remoteAddress", "flexibleRollout"]),
        (["flexibleRollout", "default"], ["remoteAddress", "applicationHostname"]),
    ],
)
def test_strategies_get_the_order_of_the_file(api, body, stored, imported):
    flag = Flag.objects.get(name="cart")
    for place, name in enumerate(stored[1:], 1):
        add_strategy(flag, "production", name=name, sort_order=place)
    body["data"]["featureStrategies"] = list_strategies(*imported)
    propose(api, body)
    assert [name for name, _ in in_production()[1]] == imported
    assert in_production()[0]
    ids = list(Strategy.objects.order_by("id").values_list("id", flat=True))
    assert api["owner"].post(IMPORT, body, format="json").content == b""
    assert list(Strategy.objects.order_by("id").values_list("id", flat=True)) == ids
    assert not ChangeRequest.objects.filter(state="Draft").exists()


@pytest.mark.parametrize("imported", [["default"], ["default", "remoteAddress"]])
def test_strategies_are_replaced_at_the_limit_while_the_flag_stays_on(api, body, settings, imported):
    settings.FLAG_ENVIRONMENT_STRATEGIES_LIMIT = len(imported)
    body["data"]["featureStrategies"] = list_strategies(*imported)
    propose(api, body)
    assert in_production() == (True, [(name, None) for name in imported])


def test_a_strategy_is_disabled_for_another_while_the_flag_stays_on(api, body):
    disabled, added = list_strategies("flexibleRollout", "default")
    body["data"]["featureStrategies"] = [disabled | {"disabled": True}, added]
    assert propose(api, body) == ["addStrategy", "updateStrategy"]
    assert in_production()[0]


def test_a_flag_without_strategies_stays_on(api, body):
    body["data"].update(featureStrategies=[], featureEnvironments=[])
    assert propose(api, body) == ["deleteStrategy", "updateEnabled"]
    assert in_production()[0]


def test_by_api_who_may_skip_requests_imports(api, body):
    assert api["admin"].post(IMPORT, body, format="json").status_code == 200
    assert (ChangeRequest.objects.count(), rollout()) == (0, "50")


def test_a_flag_that_would_be_on_at_once_is_refused(api, body):
    body["data"]["features"].append({"name": "new", "type": "release"})
    body["data"]["featureEnvironments"].append(
        {"featureName": "new", "name": "new", "environment": "x", "enabled": True}
    )
    refused = api["owner"].post(IMPORT, body, format="json")
    assert refused.status_code == 403
    assert refused.json()["message"].endswith(
        "Do that with the flag off in production, and propose to turn it on."
    )
    assert not ChangeRequest.objects.exists()
    assert not Flag.objects.filter(name="new").exists()
    checked = api["owner"].post(VALIDATE, body, format="json").json()
    assert [error["affectedItems"] for error in checked["errors"]] == [["new"]]
    assert api["admin"].post(VALIDATE, body, format="json").json()["errors"] == []


def test_what_a_request_leaves_out_is_said_before_it_is_made(body, browse, people):
    body["data"]["features"] = [{"name": "cart", "type": "release", "description": "Pay"}, {"name": "new"}]
    run = create_run(orjson.dumps(body), caller=Caller(user=people["owner"]))
    owner, url = browse("owner"), f"/import/{run.id}/"
    while_required, without = page_text(owner.get(url)), "Users in production get the changes immediately."
    assert "leaves out the rest of cart, new. Import again once it is applied." in while_required
    assert "Users in production get the changes once a change request is applied." in while_required
    assert "Can be undone" not in while_required
    ProjectEnvironment.objects.update(required_approvals=None)
    shown = page_text(owner.get(url))
    assert (without in shown, "Can be undone" in shown, "leaves out" in shown) == (True, True, False)


@pytest.fixture
def editor(people: Any, body: dict[str, Any]) -> Caller:
    """An owner of the project who may also create what projects share."""
    owner = people["owner"]
    owner.root_role_id = BuiltIn.EDITOR
    owner.save()
    return Caller(user=owner)


def needs_segment(body: dict[str, Any]) -> str:
    only = {"contextName": "userId", "operator": "IN", "values": ["7"]}
    body["data"]["segments"] = [{"id": 1, "name": "vip", "constraints": [only]}]
    body["data"]["featureStrategies"][0]["segments"] = [1]
    return "segment vip"


def needs_parent(body: dict[str, Any]) -> str:
    body["data"]["features"].append({"name": "checkout", "type": "release"})
    body["data"]["dependencies"] = [{"feature": "cart", "dependencies": [{"feature": "checkout"}]}]
    return "flag checkout"


@pytest.mark.parametrize("need", [needs_segment, needs_parent])
def test_what_changed_flags_need_must_be_there_before(api, browse, editor, body, need):
    needed = need(body)
    refused = api["owner"].post(IMPORT, body, format="json")
    message = f"cart needs {needed}, which a change request cannot create. Create it first"
    assert (refused.status_code, refused.json()["details"]) == (
        400,
        [{"path": "data.features[0]", "message": message}],
    )
    checked = api["owner"].post(VALIDATE, body, format="json").json()
    assert [error["affectedItems"] for error in checked["errors"]] == [[f"data.features[0]: {message}"]]
    run = create_run(orjson.dumps(body), caller=editor)
    owner, url = browse("owner"), f"/import/{run.id}/"
    assert f"A change request cannot create {needed}, which changed flags need." in page_text(owner.get(url))
    answer = owner.post(url, {"fingerprint": run.fingerprint, "do": "confirm", "send_for_review": "yes"})
    assert (answer.status_code, message in page_text(answer)) == (400, True)
    assert not ChangeRequest.objects.exists()


def test_what_else_a_request_leaves_out_is_said(api, browse, editor, body):
    body["data"].update(
        contextFields=[{"name": "tier"}],
        tagTypes=[{"name": "team"}],
        featureTags=[{"featureName": "cart", "tagType": "team", "tagValue": "web"}],
        segments=[{"id": 1, "name": "vip", "constraints": []}],
        savedContexts=[{"name": "Ada", "context": {"userId": "7"}}],
    )
    others = ["context field tier", "tag type team", "segment vip", "saved context Ada"]
    [*_, warning] = api["owner"].post(VALIDATE, body, format="json").json()["warnings"]
    assert warning["affectedItems"] == others
    run = create_run(orjson.dumps(body), caller=editor)
    assert "A change request leaves out context field tier, " in page_text(
        browse("owner").get(f"/import/{run.id}/")
    )
    answer = api["owner"].post(IMPORT, body, format="json").json()
    assert (answer["leftOut"], answer["alsoLeftOut"]) == (["cart"], others)
    apply_draft(api, answer["changeRequest"]["id"])
    assert api["owner"].post(IMPORT, body, format="json").content == b""
    assert ContextField.objects.filter(name="tier").exists()


def test_a_file_that_is_imported_again_replaces_what_it_added_to_the_draft(api, body):
    body["data"]["featureStrategies"] += list_strategies("default")
    for _ in range(2):
        draft = api["owner"].post(IMPORT, body, format="json").json()["changeRequest"]
    body["data"]["featureStrategies"][1]["title"] = "corrected"
    assert api["owner"].post(IMPORT, body, format="json").json()["changeRequest"] == draft
    apply_draft(api, draft["id"])
    assert in_production()[1] == [("flexibleRollout", "50"), ("default", None)]
    assert Strategy.objects.get(name="default").title == "corrected"


@pytest.mark.parametrize("by_page", [False, True])
def test_what_the_corrected_file_leaves_as_it_is_goes_from_the_draft(api, browse, people, body, by_page):
    """The first file changed the strategies of two flags, the second changes those of one."""
    live_flag("other", strategies=[{"name": "flexibleRollout", "parameters": PARAMETERS}])
    wrong = body["data"]["featureStrategies"][0] | {"featureName": "other"}
    body["data"]["features"].append({"name": "other", "type": "release"})
    body["data"]["featureEnvironments"].append(
        {"featureName": "other", "name": "other", "environment": "x", "enabled": True}
    )
    for other in (wrong, wrong | {"parameters": PARAMETERS}):
        body["data"]["featureStrategies"][1:] = [other]
        if by_page:
            run = create_run(orjson.dumps(body), caller=Caller(user=people["owner"]))
            kept = {"fingerprint": run.fingerprint, "do": "confirm", "add_to_request": "yes"}
            browse("owner").post(f"/import/{run.id}/", kept)
        else:
            api["owner"].post(IMPORT, body, format="json")
    assert [change.feature for change in ChangeRequest.objects.get().changes.all()] == ["cart"]


def test_so_does_one_that_is_uploaded_again(browse, body, people):
    body["data"]["featureStrategies"] += list_strategies("default")
    for _ in range(2):
        run = create_run(orjson.dumps(body), caller=Caller(user=people["owner"]))
        kept = {"fingerprint": run.fingerprint, "do": "confirm", "add_to_request": "yes"}
        browse("owner").post(f"/import/{run.id}/", kept)
    actions = [change.action for change in ChangeRequest.objects.get().changes.order_by("id")]
    assert actions == ["addStrategy", "updateStrategy", "reorderStrategy"]


def test_changes_of_other_flags_stay_in_the_draft(api, body):
    live_flag("other")
    url = "/api/admin/projects/shop/environments/production/change-requests"
    added = {"name": "default", "parameters": {}}
    changes = [{"feature": name, "action": "addStrategy", "payload": added} for name in ("cart", "other")]
    assert api["owner"].post(url, changes, format="json").status_code == 200
    api["owner"].post(IMPORT, body, format="json")
    kept = ChangeRequest.objects.get().changes.order_by("id").values_list("feature", "action")
    assert list(kept) == [("other", "addStrategy"), ("cart", "updateStrategy")]
