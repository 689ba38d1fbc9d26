"""The OpenAPI document matches real responses and its examples are valid, for the six main operations."""

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


@pytest.mark.parametrize(
    "body",
    [ASKED, ASKED | {"context": {}}, ASKED | {"environment": "nosuch"}, {}, []],
    ids=["a user", "nobody", "unknown", "empty", "a list"],
)
def test_the_playground_answers_as_described(body: Any, api: Any, description: Description) -> None:
    check(description, "post", PLAYGROUND, api["admin"].post(PLAYGROUND, body))
    if isinstance(body, dict) and "environment" in body:
        several = {key: body[key] for key in ("projects", "context")} | {
            "environments": [body["environment"]]
        }
        answer = api["admin"].post(PLAYGROUND + "/advanced", several)
        check(description, "post", PLAYGROUND + "/advanced", answer)


@pytest.mark.parametrize("query", ["", "?limit=0&sortBy=odd"])
@pytest.mark.parametrize("project", ["checkout", "nosuch"])
def test_applications_answers_as_described(
    project: str, query: str, api: Any, description: Description
) -> None:
    answer = api["admin"].get(APPLICATIONS.format(projectId=project) + query)
    check(description, "get", APPLICATIONS, answer)


@pytest.mark.parametrize("role", [BuiltIn.OWNER, 999, "odd"])
@pytest.mark.parametrize("who", ["admin", "viewer", "nobody"])
def test_role_usage_answers_as_described(who: str, role: Any, api: Any, description: Description) -> None:
    check(description, "get", ROLE, api[who].get(ROLE.format(roleId=role)))


@pytest.mark.parametrize("project", ["checkout", "empty", "default", "nosuch"])
@pytest.mark.parametrize("who", ["admin", "viewer", "nobody"])
def test_project_deletion_answers_as_described(
    who: str, project: str, api: Any, description: Description
) -> None:
    make_project("empty")
    check(description, "delete", PROJECT, api[who].delete(PROJECT.format(projectId=project)))


@pytest.mark.parametrize("group", ["there", 0, "odd"])
@pytest.mark.parametrize("who", ["admin", "viewer", "nobody"])
def test_group_deletion_answers_as_described(
    who: str, group: Any, api: Any, description: Description
) -> None:
    there = Group.objects.create(name="there")
    answer = api[who].delete(GROUP.format(groupId=there.pk if group == "there" else group))
    check(description, "delete", GROUP, answer)


@pytest.mark.parametrize("data", [EMPTY, EMPTY | {"features": [{"name": "a b"}]}, {"features": 5}], ids=str)
@pytest.mark.parametrize("operation", ["import", "validate"])
@pytest.mark.parametrize("who", ["admin", "viewer", "nobody"])
def test_import_answers_as_described(
    who: str, operation: str, data: Any, api: Any, description: Description
) -> None:
    sent = {"project": "shop", "environment": "production", "data": data}
    check(description, "post", BATCH + operation, api[who].post(BATCH + operation, sent))


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
