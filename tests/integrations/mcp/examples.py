"""A flag, and for each tool of the MCP server arguments about it."""

from typing import Any

import pytest

from tests.support.flags import add_strategy, make_flag, switch_on


@pytest.fixture
def cart(shop):
    """On for half of the users in production, and for one country in development."""
    flag = make_flag("cart", project=shop, description="The cart")
    add_strategy(flag, "production", "flexibleRollout", parameters={"rollout": "50", "stickiness": "userId"})
    norway = {"contextName": "country", "operator": "IN", "values": ["NO"]}
    add_strategy(flag, "development", "default", constraints=[norway])
    switch_on(flag, "production")
    switch_on(flag, "development")
    return flag


EXAMPLES: dict[str, dict[str, Any]] = {
    "find_flags": {"query": "cart"},
    "get_flag": {"flag": "cart"},
    "explain_flag": {"flag": "cart", "environment": "production", "context": {"userId": "7"}},
    "who_had_flag": {
        "flag": "cart",
        "environment": "production",
        "rows": [{"time": "2026-01-01", "userId": "7"}],
    },
    "find_cause": {
        "environment": "production",
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-01-02T00:00:00Z",
        "affected": ["7"],
    },
    "read_analyses": {"flag": "cart"},
    "analyze_flag": {
        "flag": "cart",
        "environment": "production",
        "name": "Does it sell?",
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-01-02T00:00:00Z",
        "table": "userId,time,orders\n7,2026-01-01T12:00:00Z,1\n",
        "mean": ["orders"],
    },
    "who_changes": {"flag": "cart", "environment": "production", "draft": {"enabled": False}},
    "list_changes": {"project": "shop"},
    "find_stale_flags": {},
    "create_flag": {"project": "shop", "name": "new-cart"},
    "propose_change": {
        "project": "shop",
        "environment": "production",
        "title": "Off",
        "changes": [{"feature": "cart", "action": "updateEnabled", "payload": {"enabled": False}}],
    },
    "turn_off_flag": {"flag": "cart", "environment": "production"},
    "compare_environments": {"project": "shop", "first": "development", "second": "production"},
    "check_expectations": {"project": "shop"},
    "connect_sdk": {"language": "python"},
    "list_change_requests": {"project": "shop"},
    "step_release_plan": {"flag": "cart", "environment": "development", "action": "pause"},
}
WRITING = ("analyze_flag", "create_flag", "propose_change", "turn_off_flag", "step_release_plan")
