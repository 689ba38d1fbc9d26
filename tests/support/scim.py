"""An identity provider that speaks SCIM."""

import json
from typing import Any

from rest_framework.test import APIClient

from groups.access import Caller
from groups.scim.actions import make_token, set_enabled

USERS, GROUPS = "/scim/v2/Users", "/scim/v2/Groups"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
LIST = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"


class Provider:
    """SCIM is on, and this one has its token."""

    def __init__(self) -> None:
        set_enabled(True, caller=Caller.system())
        self.secret = make_token(caller=Caller.system())
        self.client = APIClient(raise_request_exception=False)
        self.client.credentials(HTTP_AUTHORIZATION=f"Bearer {self.secret}")

    def send(self, method: str, path: str, body: Any = None, *, status: int = 200, **query: str) -> Any:
        sent = {} if body is None else {"data": json.dumps(body), "content_type": "application/scim+json"}
        answer = getattr(self.client, method)(path, query_params=query or None, **sent)
        assert answer.status_code == status, (answer.status_code, answer.content)
        return answer.json() if answer.content else None

    def patch(self, path: str, *operations: dict[str, Any], status: int = 200) -> Any:
        return self.send("patch", path, {"schemas": [PATCH], "Operations": list(operations)}, status=status)

    def find(self, path: str, text: str) -> list[Any]:
        """What a filter finds."""
        listed: list[Any] = self.send("get", path, filter=text)["Resources"]
        return listed
