"""Odd calls of agents (MCP) and of an identity provider (SCIM): nothing is told, nothing fails, nothing is written."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from tests.attack.calls import ODD, Call

MCP, SCIM = "/mcp", "/scim/v2"
TOOLS = {
    "find_flags": ("query", "project", "only", "limit"),
    "get_flag": ("flag", "limit"),
    "explain_flag": ("flag", "environment", "context", "at"),
    "who_changes": ("flag", "environment", "draft", "fixed", "limit"),
    "list_changes": ("project", "flag", "environment", "person", "since", "until"),
    "find_stale_flags": ("project", "limit"),
    "create_flag": ("project", "name", "type", "description", "dry_run", "comment"),
    "propose_change": ("project", "environment", "title", "changes", "dry_run"),
    "turn_off_flag": ("flag", "environment", "dry_run", "comment"),
    "compare_environments": ("project", "first", "second", "query"),
    "check_expectations": ("project", "environment"),
    "connect_sdk": ("language", "flag", "application"),
}
SOUND: dict[str, Any] = {
    "flag": "one-click-pay",
    "project": "checkout",
    "environment": "production",
    "first": "development",
    "second": "production",
    "name": "by-an-agent",
    "title": "t",
    "language": "curl",
    "draft": {"enabled": False},
    "changes": [{"feature": "one-click-pay", "action": "updateEnabled", "payload": {"enabled": False}}],
}
HEADERS = (
    {"Mcp-Protocol-Version": "2026-07-28"},
    {"Mcp-Protocol-Version": "x" * 500},
    {"Mcp-Protocol-Version": "2025-11-25", "Mcp-Name": "=?base64?%%?="},
    {"Origin": "https://evil.example"},
    {"Accept": "text/event-stream"},
)
FILTERS = (
    'userName eq "a"', "(" * 500 + ")" * 500, "not " * 500, 'userName eq "' + "x" * 5_000 + '"', 'emails[emails[type eq "a"]]',
    'members eq "1" or ' * 200 + "id pr", "\0", "é", 'meta.created gt "not a time"',
)  # fmt: skip
PATHS = ("0", "-1", "x", "9" * 40, "%2e%2e", "1%20OR%201=1")
PATCHED = (
    "active",
    "userName",
    "emails",
    'emails[type eq "work"].value',
    "members",
    "id",
    "name",
    "x[",
    None,
)
OPERATIONS = ("add", "replace", "remove", "Replace", "explode", 7)


def agents() -> Iterator[Call]:
    for tool, names in TOOLS.items():
        sound = {name: SOUND[name] for name in names if name in SOUND}
        for name in names:
            for odd in ODD:
                for key in ("viewer", "outsider"):
                    yield Call(key, "POST", MCP, _message("tools/call", tool, sound | {name: odd}))
        for odd in ODD:
            yield Call("viewer", "POST", MCP, _message("tools/call", tool, odd))
    for odd in ODD:
        yield Call("viewer", "POST", MCP, odd)
        yield Call("viewer", "POST", MCP, {"jsonrpc": "2.0", "id": odd, "method": odd, "params": odd})
        yield Call("backend", "POST", MCP, _message("tools/list"), statuses=(403,))
        yield Call("", "POST", MCP, _message("tools/list"), statuses=(401,))
    for headers in HEADERS:
        yield Call("viewer", "POST", MCP, _message("tools/list"), headers)


def _message(method: str, name: str = "", arguments: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": name, "arguments": arguments}}


def provisioning() -> Iterator[Call]:
    for kind in ("Users", "Groups"):
        for text in FILTERS:
            yield Call("scim", "GET", f"{SCIM}/{kind}?filter={quote(text)}")
        for odd in ODD:
            yield Call("scim", "POST", f"{SCIM}/{kind}", odd)
            yield Call("scim", "GET", f"{SCIM}/{kind}?startIndex={quote(str(odd))}&count={quote(str(odd))}")
        for path in PATHS:
            for method in ("GET", "PUT", "PATCH", "DELETE"):
                yield Call("scim", method, f"{SCIM}/{kind}/{path}", {} if method != "GET" else None)
        for attribute in PATCHED:
            for operation in OPERATIONS:
                for odd in ODD:
                    body = {"Operations": [{"op": operation, "path": attribute, "value": odd}]}
                    yield Call("scim", "PATCH", f"{SCIM}/{kind}/0", body)
        for key in ("admin", "viewer", "backend", ""):
            yield Call(key, "GET", f"{SCIM}/{kind}", statuses=(401,))
    yield Call("scim", "GET", "/api/admin/user-admin", statuses=(401,))


def calls() -> Iterator[Call]:
    yield from agents()
    yield from provisioning()
