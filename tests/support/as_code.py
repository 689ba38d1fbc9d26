"""A flag, a segment and a context field as files of flags as code have them."""

from typing import Any

URL = "/api/admin/flags-as-code"

FLAG: dict[str, Any] = {
    "name": "checkout-redesign",
    "type": "release",
    "description": "One page",
    "tags": ["simple:checkout"],
    "links": [{"url": "https://example.com/ticket", "title": "Ticket"}],
    "environments": {
        "development": {"enabled": True, "strategies": [{"name": "default"}]},
        "production": {
            "enabled": False,
            "strategies": [
                {
                    "name": "flexibleRollout",
                    "parameters": {"rollout": "50", "stickiness": "default", "groupId": "checkout-redesign"},
                    "constraints": [{"contextName": "country", "operator": "IN", "values": ["NO", "FR"]}],
                    "segments": ["beta-users"],
                }
            ],
        },
    },
}
SEGMENT = {
    "name": "beta-users",
    "description": "Early birds",
    "constraints": [{"contextName": "userId", "operator": "IN", "values": ["1", "2"]}],
}
FIELD = {"name": "country", "legalValues": [{"value": "NO"}, {"value": "FR"}]}
