"""The comment on a change: how it is given, and where it is shown."""

import pytest

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.change_checks.comments import MAX_LENGTH
from projects.models import ProjectEnvironment
from tests.support.flags import make_flag
from tests.support.for_each import for_each
from tests.support.page_text import page_text

FLAG = "/api/admin/projects/shop/features/cart"
ON = f"{FLAG}/environments/production/on"
SETTINGS = "/api/admin/projects/shop/environments/production/settings"
WHY = "Errors stayed flat. PAY-1182"


@pytest.fixture
def cart(people):
    return make_flag("cart")


@pytest.fixture
def required(cart):
    ProjectEnvironment.objects.filter(environment="production").update(comment_required=True)


def last():
    return AuditEvent.objects.latest("id")


@for_each(
    ("body", "header", "stored"),
    [
        (None, f"  {WHY} ", WHY),
        ({"comment": WHY}, None, WHY),
        ({"comment": "body"}, "header", "header"),
        (None, "Größe".encode().decode("latin-1"), "Größe"),
    ],
)
def test_it_is_in_the_header_or_the_body(api, cart, body, header, stored):
    headers = {"X-Comment": header} if header else {}
    assert api["member"].post(ON, body, format="json", headers=headers).status_code == 200
    assert last().comment == stored


@for_each("body", ["", "[]", "{", '{"comment": null}', '{"comment": "  "}'])
def test_a_body_without_one(api, cart, body):
    assert api["member"].post(ON, body, content_type="application/json").status_code == 200
    assert last().comment == ""


def test_in_a_body_with_other_members_as_a_short_string(api, cart):
    refused = api["member"].post(ON, {"comment": 5}, format="json")
    assert refused.status_code == 400
    assert refused.json()["message"] == "comment: must be a string, not 5"

    refused = api["member"].post(ON, {"comment": "x" * (MAX_LENGTH + 1)}, format="json")
    assert refused.status_code == 400
    assert refused.json()["details"] == [
        {"path": "comment", "message": "must have at most 1,000 characters, not 1,001"}
    ]
    assert api["member"].post(ON, HTTP_X_COMMENT="x" * (MAX_LENGTH + 1)).status_code == 400
    assert api["member"].post(ON, {"comment": "x" * MAX_LENGTH}, format="json").status_code == 200

    assert api["member"].put(FLAG, {"description": "x", "comment": WHY}, format="json").status_code == 200
    assert last().comment == WHY


def test_lists_of_events_have_it_and_find_by_it(api, cart):
    api["member"].post(ON, HTTP_X_COMMENT=WHY)
    events = api["viewer"].get("/api/admin/events/cart").json()["events"]
    assert {event["comment"] for event in events} == {WHY}
    api["member"].post(ON.replace("/on", "/off"))
    found = api["viewer"].get("/api/admin/search/events", {"query": "pay-1182"}).json()["events"]
    assert {event["comment"] for event in found} == {WHY}


def test_pages_show_it_escaped_and_find_by_it(browse, api, cart):
    api["member"].post(ON, HTTP_X_COMMENT=f"<b>{WHY}</b>")
    viewer = browse("viewer")
    for address in ("projects/shop/features/cart/", "projects/shop/activity/", "activity/", "activity/?q=stayed",
                    f"activity/?change={last().pk}"):  # fmt: skip
        page = viewer.get(f"/{address}", follow=True)
        assert f"<b>{WHY}</b>" in page_text(page), address
        assert f"&lt;b&gt;{WHY}" in page.text, address
    assert WHY not in page_text(viewer.get("/activity/?q=nothing-like-it"))
    assert WHY in b"".join(viewer.get("/activity/?format=csv").streaming_content).decode()


def test_a_form_has_it_and_asks_again_if_it_is_too_long(browse, cart):
    form = {"environment": "production", "enabled": "on", "confirmed": "yes", "comment": WHY}
    assert browse("member").post("/projects/shop/features/cart/switch", form).status_code == 302
    assert last().comment == WHY

    refused = browse("member").post("/projects/shop/features/cart/switch", form | {"comment": "y" * 1001})
    assert refused.status_code == 400
    assert "must have at most 1,000 characters, not 1,001" in page_text(refused)
    assert "y" * 1001 in refused.text


# Required ---------------------------------------------------------------------------------------------------


def test_without_it_the_place_is_named_and_with_it_the_change_is_made(api, required):
    assert api["viewer"].post(ON).status_code == 403
    refused = api["member"].post(ON)
    assert refused.status_code == 400
    assert refused.json()["name"] == "ValidationError"
    assert refused.json()["message"].startswith("Shop (production) requires a comment on each change.")
    assert refused.json()["details"] == [{"path": "comment", "message": "required in Shop (production)"}]
    assert api["member"].post(ON, HTTP_X_COMMENT=WHY).status_code == 200


@for_each(
    ("method", "address", "body"),
    [
        ("post", ON.replace("production", "development"), {}),
        ("put", FLAG, {"description": "x"}),
        ("post", "/api/admin/projects/shop/features", {"name": "new"}),
        ("post", "/api/admin/features/cart/tags", {"type": "simple", "value": "fast"}),
    ],
)
def test_other_changes_need_none(api, required, method, address, body):
    assert getattr(api["member"], method)(address, body, format="json").status_code < 300


def test_many_at_once_need_one_and_tokens_none(api, required):
    body = {"tokenName": "t", "type": "client", "environment": "production", "projects": ["shop"]}
    assert api["admin"].post("/api/admin/api-tokens", body, format="json").status_code == 201

    address = "/api/admin/projects/shop/bulk_features/environments/production/on"
    assert api["member"].post(address, {"features": ["cart"]}, format="json").status_code == 400
    assert (
        api["member"].post(address, {"features": ["cart"], "comment": WHY}, format="json").status_code == 200
    )


def test_a_form_without_it_asks_and_keeps_what_was_entered(browse, required):
    form = {"environment": "production", "enabled": "on", "confirmed": "yes"}
    member = browse("member")
    asked = member.post("/projects/shop/features/cart/switch", form)
    assert asked.status_code == 400
    assert "Shop (production) requires a comment on each change. Nothing was saved." in page_text(asked)
    for name, value in form.items():
        assert f'name="{name}" value="{value}"' in asked.text
    assert 'name="comment" rows="1" required' in asked.text

    page = member.get("/projects/shop/features/cart/switch?environment=production&enabled=on")
    assert "Why? (required, kept in activity)" in page_text(page)

    ProjectEnvironment.objects.update(comment_required=True)
    form = {"environment": "development", "enabled": "on"}
    asked = member.post("/projects/shop/features/cart/switch", form, headers={"HX-Request": "true"})
    assert asked.headers["HX-Retarget"] == "#main"


# The setting ------------------------------------------------------------------------------------------------


def test_the_setting_by_api(api, cart):
    assert api["owner"].put(SETTINGS, {"commentRequired": True}, format="json").status_code == 200
    places = api["viewer"].get("/api/admin/environments/project/shop").json()["environments"]
    assert {place["name"]: place["commentRequired"] for place in places} == {
        "development": False,
        "production": True,
    }
    assert last().type == "project-environment-updated"


def test_the_setting_on_its_page(browse, cart):
    form = {"environment": "production", "do": "require-comment"}
    browse("owner").post("/projects/shop/environments", form)
    assert "Comment required" in page_text(browse("owner").get("/projects/shop/settings/approvals/"))
    assert ProjectEnvironment.objects.get(project="shop", environment="production").comment_required


def test_turning_it_off_needs_one(browse, api, required):
    assert api["owner"].put(SETTINGS, {"commentRequired": False}, format="json").status_code == 400
    form = {"environment": "production", "do": "allow-no-comment", "comment": WHY}
    assert browse("owner").post("/projects/shop/environments", form).status_code == 302
    assert not ProjectEnvironment.objects.get(project="shop", environment="production").comment_required
