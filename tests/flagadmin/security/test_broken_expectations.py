"""No operation of the API changes what saved contexts get of a project that refuses that.

Every write is sent with a valid body, while saved contexts expect every flag to stay as it is.
"""

from typing import Any

import pytest

from playground.models import SavedContext
from playground.saved_contexts.expectations import check_expectations, list_expectations
from projects.models import Dependency, Flag, FlagEnvironment, Project
from projects.revision import read_revisions
from tests.flagadmin.security.batches import undone
from tests.flagadmin.security.calls import calls
from tests.flagadmin.security.routes import routes
from tests.flagadmin.security.valid_bodies import bodies
from tests.flagadmin.security.world import address, build_strategies
from tests.playground.saved_contexts.guarded import WHO, failing_in

pytestmark = pytest.mark.exhaustive

WRITES = calls(routes("api/admin/"), ("post", "put", "patch", "delete"))
CONTEXTS = {
    "nobody": {},
    **{f"user {n}": {"userId": str(n), "properties": {"country": "NO", "age": "20"}} for n in (1, 2, 3)},
}
FLAG = "/api/admin/projects/<str:project_id>/features/<str:name>"
PLACE = f"{FLAG}/environments/<str:environment>"
IN_BULK = "/api/admin/projects/<str:project_id>/bulk_features/environments/<str:environment>"
# Some of what must be refused here, so that the walk is known to break something.
WHILE_ON = {
    f"post {PLACE}/off",
    f"post {IN_BULK}/off",
    f"put {PLACE}/variants",
    f"put {PLACE}/strategies/<str:strategy_id>",
    f"patch {PLACE}/strategies/<str:strategy_id>",
    f"delete {PLACE}/strategies/<str:strategy_id>",
    f"post {FLAG}/changeProject",
    f"post {FLAG}/dependencies",
    f"delete {FLAG}",
    "post /api/admin/features-batch/import",
    "post /api/admin/projects/<str:project_id>/environments/promote",
    "post /api/admin/projects/<str:project_id>/archive",
    "put /api/admin/segments/<str:segment_id>",
}
WHILE_OFF = {f"post {PLACE}/on", f"post {IN_BULK}/on"}


@pytest.fixture
def world(shop: Any) -> dict[str, Any]:
    return build_strategies(shop)


def expect_what_is() -> None:
    """All flags, and those that operations make, stay as they are for all contexts."""
    names = [*Flag.objects.values_list("name", flat=True), "new", "copy"]
    for name, context in CONTEXTS.items():
        off = [
            {"flag": flag, "environment": environment, "enabled": False, "variant": None}
            for flag in names
            for environment in ("development", "production")
        ]
        saved = SavedContext.objects.create(name=name, project_id="shop", context=context, expectations=off)
        found = check_expectations(WHO, list_expectations(WHO, contexts=[saved]))
        saved.expectations = [as_it_is(one, each) for one, each in zip(off, found, strict=True)]
        saved.save()


def as_it_is(off: dict[str, Any], checked: Any) -> dict[str, Any]:
    if checked.met:
        return off
    [(answer, _)] = checked.shares
    return off | {"enabled": True, "variant": answer.variant}


@pytest.mark.parametrize(
    ("enabled", "with_parents", "refused"),
    [
        (True, True, WHILE_ON - {f"post {FLAG}/changeProject"}),
        (True, False, WHILE_ON),
        (False, False, WHILE_OFF),
    ],
    ids=["on", "on and without parents", "off"],
)
def test_no_operation_breaks_an_expectation(api, world, enabled, with_parents, refused):
    FlagEnvironment.objects.filter(flag__archived_at=None).update(enabled=enabled)
    if not with_parents:
        Dependency.objects.all().delete()
    Project.objects.filter(pk="shop").update(refuse_broken_expectations=True)
    expect_what_is()
    assert not failing_in("shop")

    found = {
        (f"{method} {route}", outcome(api["admin"], method, address(route, world), body))
        for method, route in WRITES
        for body in bodies(method, route, world)
    }
    assert [operation for operation, said in found if said == "broken"] == []
    assert refused <= {operation for operation, said in found if said == "refused"}


def outcome(caller: Any, method: str, url: str, body: Any) -> str:
    """What a call leads to: `refused` because of expectations, `rejected`, `broken` or `kept`; undone afterwards."""
    before = read_revisions(["shop"])
    with undone():
        response = getattr(caller, method)(url, body)
        changed = response.status_code < 400 and read_revisions(["shop"]) != before
        found = failing_in("shop") if changed else set()
    if response.status_code == 409 and response.json()["name"] == "BrokenExpectationsError":
        return "refused"
    return "rejected" if response.status_code >= 400 else "broken" if found else "kept"
