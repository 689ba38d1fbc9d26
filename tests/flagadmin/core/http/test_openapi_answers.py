"""The OpenAPI document matches real responses and its examples are valid, for the six main operations."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from groups.models import Group
from groups.permissions import BuiltIn
from projects.models import ContextField
from tests.support.cast import make_project
from tests.support.description import Description, check, examples
from tests.support.description import description as described_api
from tests.support.scenery import scenery

__all__ = ["scenery"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("scenery")]
PLAYGROUND = "/api/admin/playground"
APPLICATIONS = "/api/admin/projects/{projectId}/applications"
ROLE = "/api/admin/projects/roles/{roleId}/access"
PROJECT = "/api/admin/projects/{projectId}"
GROUP = "/api/admin/groups/{groupId}"
BATCH = "/api/admin/features-batch/"
EVENTS = "/api/admin/events/{featureName}"
SIX = (
    ("post", PLAYGROUND),
    ("get", APPLICATIONS),
    ("get", ROLE),
    ("delete", PROJECT),
    ("delete", GROUP),
    ("post", BATCH + "import"),
)
ASKED: dict[str, Any] = {"environment": "production", "projects": None, "context": {"userId": "42"}}
EMPTY = {"features": [], "featureStrategies": [], "tagTypes": []}


@pytest.fixture(scope="module")
def description() -> Description:
    return described_api()


SEVERAL = {"environments": ["production"], "projects": None, "context": {"userId": "42"}}
THREE = ("admin", "viewer", "nobody")
Asked = tuple[str, str, str, str, Any]


def asked() -> Iterator[Asked]:
    """Who asks which operation: its method, its path, this address, and this body."""
    for body in (ASKED, ASKED | {"context": {}}, ASKED | {"environment": "nosuch"}, {}, []):
        yield "admin", "post", PLAYGROUND, PLAYGROUND, body
    for body in (SEVERAL, SEVERAL | {"context": {}}, SEVERAL | {"environments": ["nosuch"]}):
        yield "admin", "post", PLAYGROUND + "/advanced", PLAYGROUND + "/advanced", body
    for project, query in product(("checkout", "nosuch"), ("", "?limit=0&sortBy=odd")):
        yield "admin", "get", APPLICATIONS, APPLICATIONS.format(projectId=project) + query, None
    for who, role in product(THREE, (BuiltIn.OWNER.value, 999, "odd")):
        yield who, "get", ROLE, ROLE.format(roleId=role), None
    for who, project in product(THREE, ("checkout", "empty", "default", "nosuch")):
        yield who, "delete", PROJECT, PROJECT.format(projectId=project), None
    for who, group in product(THREE, ("there", 0, "odd")):
        yield who, "delete", GROUP, GROUP.format(groupId=group), None
    for who, operation, data in product(
        THREE, ("import", "validate"), (EMPTY, EMPTY | {"features": [{"name": "a b"}]}, {"features": 5})
    ):
        sent = {"project": "shop", "environment": "production", "data": data}
        yield who, "post", BATCH + operation, BATCH + operation, sent


def name_call(call: Asked) -> str:
    who, method, _, address, body = call
    return f"{who} {method} {address} {'' if body is None else body}"


@pytest.mark.parametrize("call", list(asked()), ids=name_call)
def test_answers_are_as_described(call: Asked, api: Any, description: Description) -> None:
    who, method, path, address, body = call
    make_project("empty")
    there = Group.objects.create(name="there")
    address = address.replace("/there", f"/{there.pk}")
    check(description, method, path, getattr(api[who], method)(address, body))


@pytest.mark.parametrize(
    "path",
    [
        PROJECT,
        PROJECT + "/overview",
        "/api/admin/projects",
        "/api/admin/context",
        "/api/admin/events",
        EVENTS,
    ],
)
def test_what_else_is_read(path: str, api: Any, description: Description) -> None:
    ContextField.objects.create(name="first", sort_order=-1)  # as an import may make it
    answer = api["admin"].get(path.format(projectId="checkout", featureName="dark-theme"))
    check(description, "get", path, answer)


def test_what_is_exported_is_what_is_imported(api: Any, description: Description) -> None:
    answer = api["admin"].post(BATCH + "export", {"project": "checkout", "environment": "production"})
    sent = {"project": "checkout", "environment": "production", "data": answer.json()}
    body = description.operation("post", BATCH + "import")["requestBody"]
    assert body["required"]
    assert description.faults(body["content"]["application/json"]["schema"], sent) == []


@pytest.mark.parametrize(("method", "path"), SIX)
def test_its_examples(method: str, path: str, api: Any, description: Description) -> None:
    """Each keeps to its schema, tells nothing else, and, where it is a request, is answered with 200."""
    operation = description.operation(method, path)
    for schema, value in examples(operation.get("requestBody", {})):
        assert description.faults(schema, value) == []
        assert getattr(api["admin"], method)(path, value).status_code == 200
    for answer in operation["responses"].values():
        for schema, value in examples(answer):
            assert description.faults(schema, value) == []
            assert set(description.untold(schema, value)) == set()
