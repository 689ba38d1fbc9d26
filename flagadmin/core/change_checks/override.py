"""The query parameter `ignoreExpectations`, with which a change is made that a project would refuse."""

import re
from typing import Any

from rest_framework.request import Request

from flagadmin.core.http.query_parameters import read_boolean

NAME = "ignoreExpectations"
FIELD = "ignore_expectations"
"""The same in forms of the console."""
_ABOUT_FLAGS = re.compile(
    r"/api/admin/(projects/\{\w+\}/(features|bulk_features|archive|revive|delete|environments/promote)"
    r"|segments|features-batch/(import|validate))"
)


def ignores_expectations(request: Request) -> bool:
    """Whether the request has the parameter. Raises ValidationError if it is neither true nor false."""
    return read_boolean(request, NAME)


def query_parameters(path: str, method: str) -> list[dict[str, Any]]:
    """The OpenAPI parameters of an operation that changes what flags return."""
    if method == "GET" or not _ABOUT_FLAGS.match(path):
        return []
    return [
        {
            "in": "query",
            "name": NAME,
            "schema": {"type": "boolean"},
            "description": "Make the change even if it breaks expectations of saved contexts and the project refuses "
            'that. Needs the "Switch flags" permission in their environments; the audit log says so.',
        }
    ]
