"""The life of a change request, by API: proposed, reviewed, applied."""

from datetime import timedelta

import pytest
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from groups.models import User
from projects.models import Flag, FlagEnvironment, ProjectEnvironment, Segment, Strategy
from releases.models import Change, ChangeRequest
from tests.support.change_requests import (
    MAKE,
    OFF,
    ON,
    REQUESTS,
    SHOP,
    enter,
    guarded,
    propose,
    reviewer,
    sent,
    turn,
)
from tests.support.flags import add_strategy, is_on
from tests.support.for_each import for_each
from tests.support.page_text import page_text
from tests.support.playground import live_flag

rolled_back = pytest.mark.django_db(transaction=True)
"""A refused action is rolled back, which a test in one transaction would not see."""


@rolled_back
def test_nobody_changes_what_production_answers_by_the_way_but_admins_may_skip(api, cart):
    refused = api["owner"].post(OFF)
    assert refused.status_code == 403
    assert refused.json()["permissions"] == ["SKIP_CHANGE_REQUEST"]
    assert refused.json()["message"].startswith(
        "Changes of production in project shop need a change request. This changes what it answers for cart."
    )
    assert is_on()

    assert api["admin"].post(OFF).status_code == 200
    skipped = AuditEvent.objects.get(type="change-request-skipped")
    assert (skipped.feature, skipped.environment, skipped.actor_name) == ("cart", "production", "admin")


def test_events_tell_nobody_what_is_in_a_draft(api, cart):
    made = api["member"].post(MAKE, [turn(False)], format="json", headers={"X-Comment": "Secret"}).json()
    api["member"].put(f"{REQUESTS}/{made['id']}/title", {"title": "Secret"}, format="json")
    reviewers = {"reviewers": [User.objects.get(username="admin").pk]}
    assert (
        api["member"].put(f"{REQUESTS}/{made['id']}/approvers", reviewers, format="json").status_code == 204
    )
    [change] = [change for feature in made["features"] for change in feature["changes"]]
    events = AuditEvent.objects.filter(subject=str(made["id"]))
    told = list(events.order_by("id").values_list("type", "before", "after"))
    assert told == [
        ("change-request-created", None, None),
        ("change-added", None, {"id": change["id"]}),
        ("change-request-comment-added", None, {"id": made["comments"][0]["id"]}),
        ("change-request-title-updated", None, None),
        ("change-request-requested-approvers-updated", None, None),
    ]
    assert not events.exclude(comment="").exists()
    enter(api["member"], made, "In review")
    [after] = events.filter(after__state="In review").values_list("after", flat=True)
    assert after["features"][0]["changes"][0]["payload"] == {"enabled": False}
    assert [comment["text"] for comment in after["comments"]] == ["Secret"]
    assert after["reviewers"] == ["admin"]


def test_what_changes_no_answer_goes_through(api, cart):
    owner = api["owner"]
    assert owner.put(f"{SHOP}/features/cart", {"description": "The cart"}, format="json").status_code == 200
    assert owner.post(f"{SHOP}/features", {"name": "new"}, format="json").status_code == 201
    strategies = f"{SHOP}/features/new/environments/production/strategies"
    assert owner.post(strategies, {"name": "default"}, format="json").status_code == 200
    assert owner.post(ON.replace("production", "development")).status_code == 200
    title = {"title": "Everybody"}
    strategy = Strategy.objects.get(flag=cart, environment="production")
    one = f"{SHOP}/features/cart/environments/production/strategies/{strategy.pk}"
    assert owner.put(one, title, format="json").status_code == 200


def test_a_request_is_proposed_approved_and_applied(api, cart):
    made = propose(api["member"], turn(False))
    assert made["state"] == "Draft"
    assert [feature["name"] for feature in made["features"]] == ["cart"]
    assert enter(api["member"], made, "In review").json()["state"] == "In review"
    assert enter(api["admin"], made, "Approved", comment="Fine").json()["state"] == "Approved"
    assert is_on()
    applied = enter(api["admin"], made, "Applied").json()
    assert (applied["state"], applied["comments"][0]["text"]) == ("Applied", "Fine")
    assert list(applied["stateTimestamps"]) == ["Draft", "Approved", "In review", "Applied"]
    assert not is_on()
    events = AuditEvent.objects.filter(created_at=AuditEvent.objects.latest("id").created_at)
    assert set(events.values_list("type", flat=True)) == {
        "feature-environment-disabled",
        "change-request-applied",
    }
    assert set(events.values_list("actor_name", flat=True)) == {"admin"}


def test_a_draft_is_its_authors(api, cart):
    made = propose(api["member"], turn(False))
    assert api["admin"].get(f"{REQUESTS}/{made['id']}").status_code == 404
    assert api["admin"].get(REQUESTS).json() == []
    assert enter(api["admin"], made, "In review").status_code == 404
    again = propose(api["owner"], turn(False))
    assert again["id"] != made["id"]
    assert [one["id"] for one in api["member"].get(f"{REQUESTS}/pending").json()] == [made["id"]]


def test_a_second_change_of_the_same_replaces_the_first(api, cart):
    made = propose(api["member"], turn(False), {"feature": "cart", "action": "deleteDependency"})
    second = {"enabled": False, "shouldActivateDisabledStrategies": True}
    changes = propose(api["member"], turn(False) | {"payload": second})["features"][0]["changes"]
    assert {change["action"]: change.get("payload") for change in changes} == {
        "deleteDependency": None,
        "updateEnabled": second,
    }
    assert ChangeRequest.objects.get().pk == made["id"]


@for_each(("who", "status"), [("member", 403), ("viewer", 403), ("outsider", 404), ("admin", 200)])
def test_who_may_approve(api, cart, who, status):
    made = sent(api["owner"], turn(False))
    assert enter(api[who], made, "Approved").status_code == status


def test_authors_do_not_approve_their_own_but_admins_do(api, cart):
    ivy = reviewer("ivy", "APPROVE_CHANGE_REQUEST")
    made = sent(ivy, turn(False))
    refused = enter(ivy, made, "Approved")
    assert (refused.status_code, refused.json()["message"]) == (
        403,
        "You cannot approve your own change request.",
    )
    assert enter(api["admin"], sent(api["admin"], turn(False)), "Approved").status_code == 200


def test_as_many_approvals_as_the_environment_asks_for(api, cart):
    guarded(2)
    made = sent(api["member"], turn(False))
    first, second = (reviewer(name, "APPROVE_CHANGE_REQUEST") for name in ("ann", "bob"))
    assert enter(first, made, "Approved").json()["state"] == "In review"
    assert enter(first, made, "Approved").status_code == 409
    answer = enter(second, made, "Approved").json()
    assert (answer["state"], len(answer["approvals"])) == ("Approved", 2)


def test_a_request_that_has_enough_approvals_by_now_is_applied(api, browse, cart):
    """The environment asked for two when one was given, and asks for one now."""
    guarded(2)
    made = sent(api["member"], turn(False))
    page = f"/projects/shop/change-requests/{made['id']}/"
    ann = reviewer("ann", "APPROVE_CHANGE_REQUEST", "APPLY_CHANGE_REQUEST")
    assert enter(ann, made, "Approved").json()["state"] == "In review"
    assert enter(ann, made, "Applied").status_code == 403
    assert "Needs 1 more approval." in page_text(browse("admin").get(page))
    assert ann.get(f"{REQUESTS}/actionable").json() == {"total": 0}
    guarded(1)
    assert ann.get(f"{REQUESTS}/actionable").json() == {"total": 1}
    shown = browse("admin").get(page)
    assert "Needs 1 more approval" not in page_text(shown)
    assert 'name="state" value="Applied"' in shown.text
    assert 'name="state" value="Scheduled"' in shown.text
    at = (timezone.now() + timedelta(hours=1)).isoformat()
    assert enter(ann, made, "Scheduled", scheduledAt=at).json()["state"] == "Scheduled"
    applied = enter(ann, made, "Applied").json()
    assert (applied["state"], applied["minApprovals"], is_on()) == ("Applied", 1, False)


def test_what_waits_for_approval_is_its_authors_own_once_none_is_asked_for(api, browse, cart):
    made = sent(api["owner"], turn(False))
    assert enter(api["owner"], made, "Applied").status_code == 403
    guarded(None)
    shown = page_text(browse("owner").get(f"/projects/shop/change-requests/{made['id']}/"))
    assert "Needs no approval" in shown
    assert "more approval" not in shown
    assert enter(reviewer("ann", "APPLY_CHANGE_REQUEST"), made, "Applied").status_code == 403
    assert enter(api["owner"], made, "Applied").json()["state"] == "Applied"
    assert not is_on()


def test_who_gets_another_user_name_keeps_their_draft_and_their_review(api, cart):
    """As an identity provider gives people by SCIM."""
    guarded(2)
    made = propose(api["member"], turn(False))
    User.objects.filter(username="member").update(username="married")
    assert propose(api["member"], turn(False))["id"] == made["id"]
    assert enter(api["member"], made, "In review").status_code == 200
    ann = reviewer("ann", "APPROVE_CHANGE_REQUEST")
    assert enter(ann, made, "Approved").status_code == 200
    User.objects.filter(username="ann").update(username="anna")
    assert ann.get(f"{REQUESTS}/actionable").json() == {"total": 0}
    assert enter(ann, made, "Approved").status_code == 409
    answer = enter(ann, made, "Rejected").json()
    assert (answer["approvals"], [one["createdBy"]["username"] for one in answer["rejections"]]) == (
        [],
        ["anna"],
    )


def test_an_edit_withdraws_approvals(api, cart):
    made = sent(api["owner"], turn(False))
    assert enter(api["admin"], made, "Approved").json()["state"] == "Approved"
    change = f"{REQUESTS}/{made['id']}/changes/{made['features'][0]['changes'][0]['id']}"
    add = {"feature": "cart", "action": "addStrategy", "payload": {"name": "default"}}
    edited = api["owner"].put(change, add, format="json").json()
    assert (edited["state"], edited["approvals"]) == ("In review", [])
    assert edited["features"][0]["changes"][0]["action"] == "addStrategy"


def test_removing_the_last_change_ends_the_request(api, cart):
    draft = propose(api["owner"], turn(False))
    path = f"{REQUESTS}/{draft['id']}/changes/{draft['features'][0]['changes'][0]['id']}"
    assert api["owner"].delete(path).status_code == 200
    assert not ChangeRequest.objects.exists()
    made = sent(api["owner"], turn(False))
    path = f"{REQUESTS}/{made['id']}/changes/{made['features'][0]['changes'][0]['id']}"
    assert api["member"].delete(path).status_code == 403
    assert api["owner"].delete(path).status_code == 200
    assert ChangeRequest.objects.get().state == "Cancelled"


def test_what_was_changed_meanwhile_is_a_conflict(api, cart):
    strategy = add_strategy(cart, "production", parameters={"rollout": "10"})
    payload = {"id": str(strategy.pk), "title": "Mine"}
    made = sent(api["owner"], {"feature": "cart", "action": "updateStrategy", "payload": payload})
    Strategy.objects.filter(pk=strategy.pk).update(title="Theirs")
    assert enter(api["admin"], made, "Approved").status_code == 200
    shown = api["owner"].get(f"{REQUESTS}/{made['id']}").json()["features"][0]["changes"][0]
    assert shown["conflict"] == "it has been changed since this was proposed."
    refused = enter(api["admin"], made, "Applied")
    assert refused.status_code == 409
    assert refused.json()["message"].startswith("Change 1 (Change a strategy of cart): it has been changed")
    assert ChangeRequest.objects.get().state == "Approved"
    assert Strategy.objects.get(pk=strategy.pk).title == "Theirs"


def test_two_changes_of_one_strategy_are_made_one_after_the_other(api, cart):
    first, second = (add_strategy(cart, "production", parameters={"rollout": "10"}) for _ in range(2))
    titled = {"feature": "cart", "action": "updateStrategy", "payload": {"id": str(first.pk), "title": "Few"}}
    made = propose(api["owner"], titled, titled | {"payload": {"id": str(second.pk), "title": "Few"}})
    titling, other = Change.objects.order_by("id")
    other.payload, other.made_from = {"id": str(first.pk), "disabled": True}, titling.made_from
    other.save()  # earlier versions let an edit do that
    for by, state in (("owner", "In review"), ("admin", "Approved"), ("admin", "Applied")):
        assert enter(api[by], made, state).status_code == 200
    first.refresh_from_db()
    assert (first.title, first.disabled) == ("Few", True)


@rolled_back
def test_all_changes_are_made_or_none(api, cart):
    live_flag("other", strategies=[{"name": "default"}])
    made = sent(api["owner"], turn(False), {"feature": "other", "action": "archiveFeature"})
    Flag.objects.filter(name="other").delete()
    assert enter(api["admin"], made, "Approved").status_code == 200
    assert enter(api["admin"], made, "Applied").status_code == 409
    assert is_on()


@rolled_back
@for_each(
    ("change", "message"),
    [
        ({"feature": "cart", "action": "explode"}, "action: must be one of addDependency"),
        ({"feature": "none", "action": "archiveFeature"}, "feature: Flag none not found in project shop."),
        ({"action": "archiveFeature"}, "feature: is missing"),
        (
            {"feature": "cart", "action": "updateEnabled", "payload": {"enabled": "maybe"}},
            "payload.enabled: ",
        ),
        (
            {"feature": "cart", "action": "addStrategy", "payload": {"name": "unheard"}},
            "Change 1 (Add a strategy to cart): ",
        ),
        ({"feature": "cart", "action": "addStrategy", "payload": 7}, "payload: "),
        ({"action": "updateSegment", "payload": {"id": 4711}}, "payload: Segment 4711 not found"),
    ],
)
def test_what_could_not_be_applied_is_refused_at_once(api, cart, change, message):
    refused = api["owner"].post(MAKE, change, format="json")
    assert refused.status_code == 400
    assert refused.json()["message"].startswith(message)
    assert not ChangeRequest.objects.exists()


BROKEN = {"type": "json", "value": "{"}


@rolled_back
@for_each(
    ("action", "payload", "path"),
    [
        ("addStrategy", {"name": "unheard"}, "[1].payload.name"),
        ("addStrategy", {"name": "default", "segments": [4711]}, "[1].payload.segments[0]"),
        ("updateStrategy", {"id": "none", "title": "Few"}, "[1].payload"),
        ("addDependency", {"feature": "cart"}, "[1].payload.feature"),
        (
            "patchVariant",
            {"variants": [{"name": "b", "weight": 1000, "weightType": "variable", "payload": BROKEN}]},
            "[1].payload.variants[0].payload.value",
        ),
    ],
)
def test_a_refused_change_is_named_by_its_place_in_the_body(api, cart, action, payload, path):
    propose(api["owner"], {"feature": "cart", "action": "deleteDependency"})
    change = {"feature": "cart", "action": action, "payload": payload}
    refused = api["owner"].post(MAKE, [turn(False), change], format="json")
    assert refused.status_code == 400
    assert [problem["path"] for problem in refused.json()["details"]] == [path]


def test_a_proposed_segment_stays_in_its_project(api, cart):
    segment = Segment.objects.create(name="beta", constraints=[], project_id="shop")
    whole = {"id": segment.pk, "name": "gamma", "project": "shop", "constraints": []}
    made = propose(api["member"], {"action": "updateSegment", "payload": whole})
    assert made["segments"][0]["payload"] == {"id": segment.pk, "name": "gamma", "constraints": []}
    for other in ("docs", None):
        moved = [{"action": "updateSegment", "payload": whole | {"project": other}}]
        refused = api["member"].post(MAKE, moved, format="json")
        assert refused.status_code == 400
        assert refused.json()["details"] == [
            {
                "path": "[0].payload.project",
                "message": "cannot be changed by a change request: move the segment without one",
            }
        ]


def test_an_empty_list_makes_no_draft_but_an_action_without_a_payload_does(api, cart):
    refused = api["owner"].post(MAKE, [], format="json")
    assert (refused.status_code, refused.json()["message"]) == (400, "This list may not be empty.")
    assert not ChangeRequest.objects.exists()

    made = propose(api["owner"], {"feature": "cart", "action": "archiveFeature", "payload": None})
    [change] = made["features"][0]["changes"]
    assert "payload" not in change
    refused = api["owner"].post(MAKE, turn(False) | {"payload": None}, format="json")
    assert (refused.status_code, refused.json()["details"][0]["path"]) == (400, "payload")


def test_an_edited_change_must_be_one_that_could_be_proposed(api, cart):
    segment = Segment.objects.create(name="germans", constraints=[])
    made = propose(api["owner"], turn(False))
    [change] = made["features"][0]["changes"]
    edited = {"feature": "cart", "action": "updateSegment", "payload": {"id": segment.pk, "name": "all"}}
    refused = api["owner"].put(f"{REQUESTS}/{made['id']}/changes/{change['id']}", edited, format="json")
    assert refused.status_code == 400
    assert refused.json()["message"] == "feature: must not be given for segments"


def test_comments_and_titles_are_limited_by_page_as_by_api(api, browse, cart):
    made = sent(api["owner"], turn(False))
    page, text = f"/projects/shop/change-requests/{made['id']}/comment", "x" * 10_001
    browse("owner").post(page, {"comment": text})
    assert api["owner"].post(f"{REQUESTS}/{made['id']}/comments", {"text": text}).status_code == 400
    assert enter(api["owner"], made, "Cancelled", comment=text).status_code == 400
    assert api["owner"].get(f"{REQUESTS}/{made['id']}").json()["comments"] == []

    page, title = f"/projects/shop/change-requests/{made['id']}", "x" * 256
    answer = browse("owner").post(f"{page}/title", {"title": title}, follow=True)
    assert "title: must have at most 255 characters, not 256" in page_text(answer)
    assert (
        api["owner"].put(f"{REQUESTS}/{made['id']}/title", {"title": title}, format="json").status_code == 400
    )
    assert ChangeRequest.objects.get().title == ""


def test_refusals_name_the_states_in_their_order(api, cart):
    refused = enter(api["owner"], propose(api["owner"], turn(False)), "Done")
    assert refused.status_code == 400
    assert refused.json()["message"] == (
        "state: must be one of In review, Approved, Scheduled, Applied, Cancelled, Rejected, not Done"
    )

    made = propose(api["owner"], turn(False))
    enter(api["owner"], made, "Cancelled")
    refused = api["owner"].put(f"{REQUESTS}/{made['id']}/title", {"title": "Off"}, format="json")
    assert refused.json()["message"].endswith("it must be in state Draft or In review or Approved.")


@rolled_back
def test_segments_of_the_installation_are_guarded(api, cart):
    segment = Segment.objects.create(name="germans", constraints=[])
    strategy = Strategy.objects.get(flag=cart)
    strategy.segment_links.create(segment=segment)
    constraints = [{"contextName": "country", "operator": "IN", "values": ["DE"]}]
    editor = api["editor"]
    refused = editor.put(f"/api/admin/segments/{segment.pk}", {"constraints": constraints}, format="json")
    assert refused.status_code == 403
    payload = {"id": segment.pk, "name": "germans", "constraints": constraints}
    made = sent(api["owner"], {"action": "updateSegment", "payload": payload})
    assert made["segments"][0]["name"] == "germans"
    assert enter(api["admin"], made, "Approved").status_code == 200
    assert enter(api["admin"], made, "Applied").status_code == 200
    segment.refresh_from_db()
    assert segment.constraints[0]["values"] == ["DE"]


@rolled_back
def test_skipping_for_a_segment_is_recorded_for_the_flags_that_use_it(api, cart):
    segment = Segment.objects.create(name="germans", constraints=[])
    Strategy.objects.get(flag=cart).segment_links.create(segment=segment)
    off = live_flag("off", strategies=[{"name": "default", "segments": [segment]}])
    FlagEnvironment.objects.filter(flag=off).update(enabled=False)
    constraints = [{"contextName": "country", "operator": "IN", "values": ["DE"]}]
    body, why = {"name": "germans", "constraints": constraints}, {"X-Comment": "Urgent"}
    url = f"/api/admin/segments/{segment.pk}"
    refused = api["editor"].put(url, body, format="json")
    assert "This changes what it answers for cart. Nothing was saved." in refused.json()["message"]
    assert api["admin"].put(url, body, format="json", headers=why).status_code == 204
    skipped = AuditEvent.objects.get(type="change-request-skipped")
    assert (skipped.project, skipped.feature, skipped.environment, skipped.comment) == (
        "shop",
        "cart",
        "production",
        "Urgent",
    )


def test_an_owner_sets_the_policy(api, cart):
    path = f"{MAKE}/config"
    body = {"changeRequestsEnabled": True, "requiredApprovals": 3}
    assert api["member"].put(path, body, format="json").status_code == 403
    assert api["owner"].put(path, body, format="json").status_code == 200
    [production] = [
        row for row in api["member"].get(f"{REQUESTS}/config").json() if row["environment"] == "production"
    ]
    assert (production["changeRequestEnabled"], production["requiredApprovals"]) == (True, 3)
    wrong = api["owner"].put(path, {**body, "requiredApprovals": 11}, format="json")
    assert (wrong.status_code, wrong.json()["message"]) == (
        400,
        "requiredApprovals: must be 0 to 10, not 11",
    )
    assert api["owner"].put(path, {"changeRequestsEnabled": False}, format="json").status_code == 200
    assert api["owner"].post(OFF).status_code == 200


def test_without_a_policy_a_request_is_its_authors_own_to_apply(api, cart):
    """With their own permissions, also for those who may apply what others have approved."""
    guarded(None)
    made = sent(api["owner"], turn(False))
    assert enter(api["viewer"], made, "Applied").status_code == 403
    assert enter(api["owner"], made, "Applied").status_code == 200
    assert not is_on()
    alone = reviewer("alone", "APPLY_CHANGE_REQUEST")
    mine = sent(alone, turn(True))
    assert enter(alone, mine, "Applied").status_code == 403
    assert not is_on()


def test_counts_titles_comments_and_reviewers(api, cart, people):
    made = sent(api["member"], turn(False))
    one = f"{REQUESTS}/{made['id']}"
    assert api["member"].put(f"{one}/title", {"title": "Off on Friday"}, format="json").status_code == 204
    assert api["viewer"].post(f"{one}/comments", {"text": "Why?"}, format="json").status_code == 204
    reviewers = api["member"].get(f"{REQUESTS}/available-reviewers/production").json()["reviewers"]
    assert [row["username"] for row in reviewers] == ["admin"]
    asked = {"reviewers": [people["admin"].pk]}
    assert api["member"].put(f"{one}/approvers", asked, format="json").status_code == 204
    assert api["admin"].get(f"{one}/approvers").json()["reviewers"] == reviewers
    wrong = {"reviewers": [people["viewer"].pk]}
    assert api["member"].put(f"{one}/approvers", wrong, format="json").status_code == 400
    assert api["admin"].get(f"{REQUESTS}/count").json()["reviewRequired"] == 1
    assert api["admin"].get(f"{REQUESTS}/actionable").json() == {"total": 1}
    assert api["member"].get(f"{REQUESTS}/actionable").json() == {"total": 0}
    assert [row["title"] for row in api["viewer"].get(f"{REQUESTS}/open").json()] == ["Off on Friday"]
    assert len(api["viewer"].get(f"{REQUESTS}/pending/cart").json()) == 1
    assert api["outsider"].get(REQUESTS).status_code == 404


def test_title_reviewers_and_comments_need_no_comment_on_a_change(api, cart, people):
    one = f"{REQUESTS}/{sent(api['member'], turn(False))['id']}"
    ProjectEnvironment.objects.update(comment_required=True)
    asked = {"reviewers": [people["admin"].pk]}
    assert api["member"].put(f"{one}/title", {"title": "Off on Friday"}, format="json").status_code == 204
    assert api["member"].put(f"{one}/approvers", asked, format="json").status_code == 204
    assert api["viewer"].post(f"{one}/comments", {"text": "Why?"}, format="json").status_code == 204


def test_discarding_a_draft_needs_no_comment_on_a_change(api, cart):
    draft = propose(api["member"], turn(False))
    ProjectEnvironment.objects.update(comment_required=True)
    assert api["member"].delete(f"{REQUESTS}/{draft['id']}").status_code == 200


def test_title_reviewers_and_comments_are_audited(api, cart, people):
    made = sent(api["member"], turn(False))
    one = f"{REQUESTS}/{made['id']}"
    for _ in range(2):
        api["member"].put(f"{one}/title", {"title": "Off on Friday"}, format="json")
        api["member"].put(f"{one}/approvers", {"reviewers": [people["admin"].pk]}, format="json")
    api["viewer"].post(f"{one}/comments", {"text": "Why?"}, format="json")
    enter(api["admin"], made, "Approved", comment="Fine")
    events = AuditEvent.objects.filter(subject=f"{made['id']}", actor_name__in=("member", "viewer", "admin"))
    recorded = [(event.type, event.actor_name, event.before, event.after) for event in events.order_by("id")]
    comment = "change-request-comment-added"
    why, fine = ChangeRequest.objects.get().comments.all()
    assert [row for row in recorded if "title" in row[0] or "requested" in row[0] or "comment" in row[0]] == [
        ("change-request-title-updated", "member", {"title": ""}, {"title": "Off on Friday"}),
        (
            "change-request-requested-approvers-updated",
            "member",
            {"reviewers": []},
            {"reviewers": ["admin"]},
        ),
        (comment, "viewer", None, {"id": why.pk, "text": "Why?"}),
        (comment, "admin", None, {"id": fine.pk, "text": "Fine"}),
    ]


def test_of_several_who_apply_a_request_the_later_ones_are_told_of_a_conflict(api, cart):
    guarded(0)
    made = sent(api["owner"], turn(False))
    assert enter(api["owner"], made, "Applied").status_code == 200
    again = enter(api["owner"], made, "Applied")
    assert (again.status_code, again.json()["message"]) == (
        409,
        f"Change request {made['id']} is already in state Applied.",
    )
