"""GET and POST …/features/:name/revert."""

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from projects.projects.environments import remove_environment
from projects.strategies.actions import add_strategy
from tests.support.flags import is_on
from tests.support.for_each import for_each

pytestmark = pytest.mark.django_db
URL = "/api/admin/projects/shop/features/cart/revert"
SYSTEM = Caller.system()


def test_preview_then_revert(api, created):
    preview = api["reader"].get(URL, {"event": created})
    assert preview.status_code == 200
    assert preview.json()["event"] == created
    production, details = preview.json()["parts"]
    assert (production["part"], production["environment"]) == ("environment", "production")
    assert production["changes"] == ["switch: on → off", "strategy: − On for everyone"]
    assert production["missingPermissions"] == ["UPDATE_FEATURE_ENVIRONMENT", "DELETE_FEATURE_STRATEGY"]
    assert (details["part"], details["changes"]) == ("details", ["description: New → none"])
    assert details["environment"] is None

    tag = preview["ETag"]
    refused = api["reader"].post(URL, {"event": created}, format="json")
    assert (refused.status_code, refused.json()["name"]) == (403, "NoAccessError")
    done = api["member"].post(URL, {"event": created}, format="json", HTTP_IF_MATCH=tag)
    assert done.status_code == 200
    assert done.json()["description"] is None
    assert not any(place["enabled"] or place["strategies"] for place in done.json()["environments"])
    event = AuditEvent.objects.latest("id")
    assert event.actor_name == "member"
    again = api["member"].post(URL, {"event": created}, format="json", HTTP_IF_MATCH=tag)
    assert again.status_code == 412

    [told] = api["reader"].get("/api/admin/events/cart", {"limit": 1}).json()["events"]
    assert told["summary"].startswith("member reverted flag cart to its state of ")
    assert told["summary"].endswith(" UTC")


def test_only_some_parts_and_none_of_before_there_was_a_flag(api, created):
    body = {"event": created, "environments": [], "dependencies": False}
    done = api["member"].post(URL, body, format="json")
    assert done.json()["description"] is None
    assert [place["enabled"] for place in done.json()["environments"] if place["name"] == "production"] == [
        True
    ]

    refused = api["member"].post(URL, {"at": "2020-01-01T00:00:00Z"}, format="json")
    assert refused.status_code == 404
    assert refused.json()["message"] == "There was no flag cart on 1 Jan 2020, 00:00:00 UTC."
    assert is_on()


@for_each(
    ("body", "path"),
    [
        ({}, "event"),
        ({"event": 1, "at": "2026-11-21T14:03:00Z"}, "event"),
        ({"event": 1}, "event"),
        ({"at": "2999-01-01T00:00:00Z"}, "at"),
        ({"at": "2026-11-21T14:03:00Z", "environments": ["nosuch"]}, "environments"),
    ],
)
def test_a_body_that_says_no_version(api, created, body, path):
    refused = api["member"].post(URL, body, format="json")
    assert refused.status_code == 400
    assert [problem["path"] for problem in refused.json()["details"]] == [path]


def test_the_tag_of_the_flag_is_one_to_revert_with(api, created):
    flag = URL.removesuffix("/revert")
    tag = api["member"].get(flag)["ETag"]
    off = api["member"].post(f"{flag}/environments/development/on")
    assert off.status_code == 200
    stale = api["member"].post(URL, {"event": created}, format="json", HTTP_IF_MATCH=tag)
    assert (stale.status_code, stale.json()["name"]) == (412, "PreconditionFailedError")

    tag = api["member"].get(flag)["ETag"]
    assert api["member"].get(flag, HTTP_IF_NONE_MATCH=tag).status_code == 304
    done = api["member"].post(URL, {"event": created}, format="json", HTTP_IF_MATCH=tag)
    assert done.status_code == 200
    assert api["member"].post(URL, {"event": created}, format="json", HTTP_IF_MATCH=tag).status_code == 412


def test_the_tag_of_the_flag_is_about_its_details_too(api, created):
    """Which is what changes of these compare: they do not mind what has become of strategies."""
    flag = URL.removesuffix("/revert")
    tag = api["member"].get(flag)["ETag"]
    assert api["member"].post(f"{flag}/environments/development/on").status_code == 200
    assert api["member"].put(flag, {"stale": True}, format="json", HTTP_IF_MATCH=tag).status_code == 200
    assert api["member"].put(flag, {"stale": False}, format="json", HTTP_IF_MATCH=tag).status_code == 412


def test_the_tag_knows_environments_that_the_project_no_longer_uses(api, created):
    add_strategy("shop", "cart", "development", {"name": "default"}, caller=SYSTEM)
    remove_environment("shop", "development", caller=SYSTEM)
    tag = api["member"].get(URL.removesuffix("/revert"))["ETag"]
    kept = {"event": created, "environments": ["production"]}
    assert api["member"].post(URL, kept, format="json", HTTP_IF_MATCH=tag).status_code == 200
