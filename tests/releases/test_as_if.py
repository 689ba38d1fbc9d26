"""The playground as if a change request were applied."""

from typing import Any

import pytest

from projects.models import Flag, Segment, Strategy
from tests.support.change_requests import enter, guarded, propose, sent, turn
from tests.support.description import check, description
from tests.support.for_each import for_each
from tests.support.playground import live_flag

ADVANCED = "/api/admin/playground/advanced"


@pytest.fixture
def cart(shop: Any) -> Flag:
    guarded(1)
    live_flag("other", strategies=[{"name": "default"}])
    return live_flag("cart", strategies=[{"name": "default"}])


def evaluate(by: Any, made: Any, context: Any = None) -> Any:
    body = {"context": {"userId": "42"} if context is None else context}
    return by.post(f"/api/admin/playground/change-request/{made['id']}", body, format="json")


def results(answer: Any) -> dict[str, list[bool]]:
    assert answer.status_code == 200, answer.content
    return {
        flag["name"]: [item["isEnabled"] for item in flag["environments"]["production"]]
        for flag in answer.json()["features"]
    }


def test_flags_are_as_the_request_leaves_them(api, cart):
    made = sent(api["owner"], turn(False))
    assert results(evaluate(api["viewer"], made)) == {"cart": [False], "other": [True]}
    assert Flag.objects.get(name="cart").environments.get(environment="production").enabled


def test_the_answer_is_the_advanced_one_and_is_described(api, cart):
    made = sent(api["owner"], turn(True))
    answer = evaluate(api["owner"], made, {"userId": "1,2", "region": ["x"]})
    body = {"environments": ["production"], "projects": ["shop"], "context": {"userId": "1,2"}}
    assert answer.status_code == 400
    answer = evaluate(api["owner"], made, body["context"])
    assert answer.json() == api["owner"].post(ADVANCED, body, format="json").json()
    check(description(), "post", "/api/admin/playground/change-request/{requestId}", answer)


def test_a_segment_changes_all_flags_that_use_it(api, cart):
    segment = Segment.objects.create(name="germans", constraints=[])
    Strategy.objects.get(flag__name="other").segment_links.create(segment=segment)
    constraints = [{"contextName": "userId", "operator": "IN", "values": ["1"]}]
    payload = {"id": segment.pk, "name": "germans", "constraints": constraints}
    made = propose(api["owner"], {"action": "updateSegment", "payload": payload})
    answer = evaluate(api["owner"], made, {"userId": "1,2"})
    assert results(answer) == {"cart": [True, True], "other": [True, False]}


def test_an_archived_flag_is_not_listed(api, cart):
    made = sent(api["owner"], {"feature": "cart", "action": "archiveFeature"})
    assert results(evaluate(api["owner"], made)) == {"other": [True]}


def test_what_is_answered_is_what_is_there_once_it_is_applied(api, cart):
    strategy = {"name": "flexibleRollout", "parameters": {"rollout": "30", "stickiness": "userId"}}
    [old] = Strategy.objects.filter(flag=cart)
    changes = [
        {"feature": "cart", "action": "addStrategy", "payload": strategy},
        {"feature": "cart", "action": "deleteStrategy", "payload": {"id": str(old.pk)}},
        {"feature": "other", "action": "addDependency", "payload": {"feature": "cart"}},
    ]
    context = {"userId": ",".join(map(str, range(20)))}
    made = sent(api["owner"], *changes)
    before = results(evaluate(api["owner"], made, context))
    enter(api["admin"], made, "Approved")
    assert enter(api["admin"], made, "Applied").status_code == 200
    body = {"environments": ["production"], "projects": ["shop"], "context": context}
    assert results(api["owner"].post(ADVANCED, body, format="json")) == before
    assert 0 < sum(before["cart"]) < 20


def test_a_finished_request_is_refused(api, cart):
    made = sent(api["owner"], turn(False))
    enter(api["owner"], made, "Cancelled")
    refused = evaluate(api["owner"], made)
    assert (refused.status_code, refused.json()["name"]) == (403, "InvalidOperationError")


@for_each("who", ["outsider", "admin"])
def test_a_request_that_the_caller_may_not_read_is_unknown(api, cart, who):
    made = propose(api["owner"], turn(False)) if who == "admin" else sent(api["owner"], turn(False))
    refused = evaluate(api[who], made)
    assert (refused.status_code, refused.json()["message"]) == (
        404,
        f"Change request {made['id']} not found.",
    )


def test_a_request_that_cannot_be_applied_says_why(api, cart):
    made = sent(api["owner"], turn(False), {"feature": "other", "action": "archiveFeature"})
    Flag.objects.filter(name="other").delete()
    refused = evaluate(api["owner"], made)
    assert refused.status_code == 400
    assert refused.json()["message"].startswith("Change 2: Flag other not found")


@for_each("body", [{}, {"context": 5}, [], None])
def test_a_malformed_body_is_refused(api, cart, body):
    made = sent(api["owner"], turn(False))
    refused = api["owner"].post(f"/api/admin/playground/change-request/{made['id']}", body, format="json")
    assert (refused.status_code, refused.json()["name"]) == (400, "ValidationError")
