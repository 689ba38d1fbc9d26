"""What goes over the wire, in both eras of the protocol, and what is refused."""

import base64
from typing import Any

import pytest
from mcp_types import methods

from integrations.mcp.api import CAPABILITIES_META, TOOLS, VERSION_META
from tests.support.cast import client

pytestmark = pytest.mark.django_db
MODERN, EARLIER = "2026-07-28", "2025-11-25"
META = {VERSION_META: MODERN, CAPABILITIES_META: {}}


def post(who: Any, method: str, params: Any = None, *, request_id: Any = 7, **headers: str) -> Any:
    body = {"jsonrpc": "2.0", "id": request_id, "method": method} | (
        {} if params is None else {"params": params}
    )
    return who.post("/mcp", body, headers={name.replace("_", "-"): v for name, v in headers.items()})


def modern(who: Any, method: str, params: Any = None, **headers: str) -> Any:
    named = {"Mcp_Name": params["name"]} if params and "name" in params else {}
    said = {"Mcp_Protocol_Version": MODERN, "Mcp_Method": method} | named | headers
    return post(who, method, (params or {}) | {"_meta": META}, **said)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("server/discover", None),
        ("tools/list", None),
        ("tools/call", {"name": "find_flags", "arguments": {}}),
        ("tools/call", {"name": "find_flags", "arguments": {"limit": 0}}),
    ],
)
def test_results_of_2026_have_its_shape(api, method, params):
    answer = modern(api["viewer"], method, params)
    assert answer.status_code == 200
    assert answer.json()["id"] == 7
    methods.validate_server_result(method, MODERN, answer.json()["result"])


@pytest.mark.parametrize(
    ("method", "params"),
    [
        (
            "initialize",
            {"protocolVersion": EARLIER, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
        ),
        ("ping", None),
        ("tools/list", None),
        ("tools/call", {"name": "find_flags", "arguments": {}}),
    ],
)
def test_results_of_2025_have_its_shape(api, method, params):
    answer = post(api["viewer"], method, params, Mcp_Protocol_Version=EARLIER)
    assert answer.status_code == 200
    methods.validate_server_result(method, EARLIER, answer.json()["result"])
    assert "resultType" not in answer.json()["result"]


@pytest.mark.parametrize("wanted", ["2024-11-05", "2099-01-01", None, 5])
def test_a_client_of_another_version_is_offered_the_latest_with_sessions(api, wanted):
    answer = post(api["viewer"], "initialize", {"protocolVersion": wanted})
    assert answer.json()["result"]["protocolVersion"] == EARLIER


def test_notifications_are_accepted_and_streams_are_not_offered(api):
    body = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert api["viewer"].post("/mcp", body).status_code == 202
    for method in ("get", "delete", "put"):
        answer = getattr(api["viewer"], method)("/mcp")
        assert answer.status_code == 405
        assert answer["Allow"] == "POST, OPTIONS"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Mcp_Protocol_Version": "2099-01-01"}, -32022),
        ({"Mcp_Method": "tools/call"}, -32020),
        ({"Mcp_Method": ""}, -32020),
    ],
)
def test_headers_that_say_something_else_are_refused(api, headers, code):
    answer = modern(api["viewer"], "tools/list", **headers)
    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["id"]) == (400, code, 7)


def test_the_name_of_the_tool_is_compared_decoded(api):
    encoded = f"=?base64?{base64.b64encode(b'find_flags').decode()}?="
    params = {"name": "find_flags"}
    assert modern(api["viewer"], "tools/call", params, Mcp_Name=encoded).status_code == 200
    for wrong in ("turn_off_flag", "=?base64?%%?=", "=?base64?/w==?="):
        assert modern(api["viewer"], "tools/call", params, Mcp_Name=wrong).json()["error"]["code"] == -32020


@pytest.mark.parametrize("missing", [VERSION_META, CAPABILITIES_META])
def test_a_request_of_2026_says_what_it_is(api, missing):
    meta = {key: value for key, value in META.items() if key != missing}
    said = {"Mcp_Protocol_Version": MODERN, "Mcp_Method": "tools/list"}
    answer = post(api["viewer"], "tools/list", {"_meta": meta}, **said)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize(
    "body",
    [
        [],
        [{"jsonrpc": "2.0", "id": 1, "method": "ping"}],
        "x",
        7,
        None,
        {},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": {}, "method": "ping"},
        {"jsonrpc": "2.0", "id": True, "method": "ping"},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    ],
)
def test_what_is_no_single_request_is_refused(api, body):
    answer = api["viewer"].post("/mcp", body)
    assert answer.status_code == 400
    assert answer.json()["jsonrpc"] == "2.0"
    assert answer.json()["error"]["code"] < -32_000


def test_unreadable_bodies_are_parse_errors(api):
    answer = api["viewer"].post("/mcp", "{", content_type="application/json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32700)
    assert api["viewer"].post("/mcp", "a=1", content_type="text/plain").status_code == 415


@pytest.mark.parametrize("method", ["resources/list", "prompts/list", "subscriptions/listen", "x" * 500])
def test_other_methods_are_not_found(api, method):
    assert modern(api["viewer"], method).status_code == 404
    earlier = post(api["viewer"], method)
    assert (earlier.status_code, earlier.json()["error"]["code"]) == (200, -32601)


@pytest.mark.parametrize("name", ["nope", None, 5, ["find_flags"]])
def test_a_tool_that_does_not_exist_is_refused_with_those_that_do(api, name):
    error = post(api["viewer"], "tools/call", {"name": name}).json()["error"]
    assert error["code"] == -32602
    assert all(tool in error["message"] for tool in TOOLS)


@pytest.mark.parametrize("arguments", ["x", 5, [], True])
def test_arguments_that_are_no_object_are_told_to_the_model(api, arguments):
    result = post(api["viewer"], "tools/call", {"name": "find_flags", "arguments": arguments}).json()[
        "result"
    ]
    assert result["isError"]


def test_pages_of_other_sites_cannot_call(api):
    assert post(api["viewer"], "ping", Origin="https://evil.example").status_code == 403
    assert post(api["viewer"], "ping", Origin="http://testserver").status_code == 200


def test_a_session_of_the_console_is_no_token(browse):
    assert browse("admin").post("/mcp", "{}", content_type="application/json").status_code == 401
    assert client("user:nonsense").post("/mcp", {}).status_code == 401
