"""Every API route rejects missing and invalid tokens, and every write rejects a viewer's token.

New routes are tested automatically. Exceptions are listed here by name.
"""

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from tests.flagadmin.security.calls import HARMLESS, calls, send
from tests.flagadmin.security.routes import routes
from tests.flagadmin.security.world import BODIES, address
from tests.support.cast import client, make_project, make_token

pytestmark = pytest.mark.exhaustive

# DESIGN.md, "Errors by name": what answers without a key. The frontend API and OFREP answer CORS preflights besides.
WITHOUT_A_KEY = {
    ("get", "/api/openapi.json"),
    ("get", "/api/docs/"),
    ("get", "/api/docs/<str:operation_id>/"),
    ("get", "/api/admin/flags-as-code/schemas/<str:name>"),
}

# Somebody without the permission to see sources of signals does not learn which there are.
UNSEEN = "/api/admin/signals/<str:source_id>"

API, ADMIN, SDK, FRONTEND, OFREP = (
    routes(prefix) for prefix in ("api/", "api/admin/", "api/client/", "api/frontend", "ofrep/")
)
FRONTEND += routes("api/proxy")
API += OFREP + routes("mcp") + routes("scim/")


def answers(caller, asked, world):
    """{(method, route): status} of each call, undone afterwards."""
    return {(method, str(route)): send(caller, method, route, world).status_code for method, route in asked}


def others(found, expected):
    """What answers otherwise: empty when all is well."""
    return {call: status for call, status in found.items() if status not in expected}


def test_the_walk_sees_the_product():
    seen = {str(route) for route in API}
    assert len(seen) > 80
    for known in (
        "/api/admin/playground",
        "/api/admin/projects/<str:project_id>",
        "/api/admin/groups/<str:groupId>",
        "/api/admin/features-batch/import",
        "/api/client/features",
    ):
        assert known in seen


def test_the_lists_name_what_there_is():
    there = {(method, str(route)) for method, route in calls(API)}
    assert there >= WITHOUT_A_KEY
    assert set() == HARMLESS - there


def test_without_a_key_that_is_known_and_valid(api, people, world):
    expired = make_token("personal", user=people["admin"], expires_at="2020-01-01T00:00:00Z")
    for key in (None, "", "nonsense", "*:*.nonsense", "user:nonsense", expired):
        assert set(others(answers(client(key), calls(API), world), {401})) == WITHOUT_A_KEY, key
    for route in API:
        if ("get", str(route)) not in WITHOUT_A_KEY and route not in FRONTEND + OFREP:
            for method in ("options", "head", "patch"):
                status = getattr(api["nobody"], method)(address(route, world)).status_code
                assert status == 401, (method, route)


def test_keys_do_nothing_in_apis_of_others(api, world):
    backend, frontend = (
        client(make_token(kind, environment="production", seen_at=timezone.now()))
        for kind in ("backend", "frontend")
    )
    of_admins = [call for call in calls(ADMIN) if (call[0], str(call[1])) not in WITHOUT_A_KEY]
    of_sdks = calls(SDK + FRONTEND + OFREP)
    for key, asked in (
        (backend, of_admins + calls(FRONTEND)),
        (frontend, of_admins + calls(SDK)),
        (api["admin"], of_sdks),
        (api["admin_token"], of_sdks),
    ):
        assert others(answers(key, asked, world), {403}) == {}


def test_the_bodies_are_such_that_only_rights_stand_against_them(api, world):
    with_body = [(method, route) for method, route in calls(ADMIN) if (method, str(route)) in BODIES]
    assert len(with_body) == len(BODIES)
    for method, route in with_body:
        response = send(api["admin"], method, route, world)
        assert response.status_code < 300 or response.json()["name"] == "InvalidOperationError", (
            method,
            route,
        )


def answered(caller, world):
    """Each call of the admin API with its answer. Refusals are records."""
    for method, route in calls(ADMIN):
        response = send(caller, method, route, world)
        if response.status_code >= 400:
            record = response.json()
            assert response.status_code < 500, (method, route, record)
            assert {"id", "name", "message"} <= set(record), (method, route)
        yield method, route, response


def test_a_viewer_writes_nothing(api, world):
    found = {
        (method, str(route)): response.status_code
        for method, route, response in answered(api["viewer"], world)
        if method != "get" and (method, str(route)) not in HARMLESS
    }
    unseen = {call: status for call, status in found.items() if call[1].startswith(UNSEEN) and status == 404}
    assert unseen
    assert others(found, {403}) == dict.fromkeys(unseen, 404)


def test_an_outsider_sees_nothing_of_a_project_nor_its_name_or_flags_elsewhere(api, world):
    of_a_project = {}
    for method, route, response in answered(api["outsider"], world):
        if is_of_a_project(route):
            of_a_project[method, str(route)] = response.status_code
        if response.status_code == 200:
            for name in ("shop", "third"):
                assert name not in response.content.decode(), (method, route)
    assert of_a_project
    assert others(of_a_project, {404}) == {}


def is_of_a_project(route):
    return "project_id" in route.names or "projectId" in route.names


def test_an_owner_of_one_project_does_nothing_in_another(api, world):
    make_project("other")
    elsewhere = world | {"project": "other"}
    of_a_project = [call for call in calls(ADMIN) if is_of_a_project(call[1])]
    assert others(answers(api["owner"], of_a_project, elsewhere), {404}) == {}


def test_a_session_without_the_forms_token_changes_nothing(people, world):
    browser = APIClient(enforce_csrf_checks=True)
    browser.force_login(people["admin"])
    writes = calls(ADMIN, ("post", "put", "patch", "delete"))
    assert others(answers(browser, writes, world), {403}) == {}
