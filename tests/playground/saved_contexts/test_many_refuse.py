"""A change that several projects refuse: of a segment that all of them use."""

from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.change_checks import BrokenExpectations, unite_refusals
from flagadmin.core.errors import Problem
from playground.models import SavedContext
from projects.models import Project, Segment
from tests.support.cast import make_project
from tests.support.playground import live_flag
from tests.support.records import events, refused

NOBODY = [{"contextName": "userId", "operator": "IN", "values": ["7"]}]
FORM = {
    "name": "everybody",
    "c": "0",
    "c-0-field": "userId",
    "c-0-operator": "IN",
    "c-0-values": "7",
    "confirmed": "yes",
}


@pytest.fixture
def everybody(shop: Any) -> Segment:
    return Segment.objects.create(name="everybody", constraints=[])


@pytest.mark.django_db(transaction=True)
def test_all_refusing_projects_are_named(everybody, api, browse):
    """A segment of no project breaks expectations in three of the projects that refuse changes."""
    for name in ("alpha", "beta", "shop"):
        if name != "shop":
            make_project(name)
        flag = live_flag(f"{name}-flag", name, strategies=[{"name": "default", "segments": [everybody]}])
        expected = {"flag": flag.name, "environment": "production", "enabled": True, "variant": None}
        SavedContext.objects.create(
            name=name, project_id=name, context={"userId": "42"}, expectations=[expected]
        )
    make_project("calm")
    Project.objects.update(refuse_broken_expectations=True)

    url, body = f"/api/admin/segments/{everybody.pk}", {"name": "everybody", "constraints": NOBODY}
    record = refused(api["admin"].put(url, body), 409, "BrokenExpectationsError")
    assert "breaks 3 expectations, which projects alpha, beta and shop refuse." in record["message"]
    assert {(each["project"], each["savedContext"]) for each in record["expectations"]} == {
        ("alpha", "alpha"),
        ("beta", "beta"),
        ("shop", "shop"),
    }
    assert [each["path"] for each in record["details"]] == ["alpha", "beta", "shop"]

    page = browse("admin").post(f"/segments/{everybody.pk}/", FORM)
    assert page.status_code == 409
    assert "Projects alpha, beta and shop refuse changes" in page.content.decode()
    assert not AuditEvent.objects.exists()

    assert api["admin"].put(f"{url}?ignoreExpectations=true", body).status_code == 204
    found = events("expectation-overridden")
    assert {(each.project, each.actor_name, each.subject) for each in found} == {
        (name, "admin", name) for name in ("alpha", "beta", "shop")
    }


def test_many_refusing_projects_are_counted():
    refused = [BrokenExpectations([f"p{n}"], [Problem("", "")] * 100, [{}] * 100, 150) for n in range(7)]
    found = unite_refusals(refused)
    assert found.message.startswith(
        "This breaks 1050 expectations, which projects p0, p1, p2 and 4 more refuse."
    )
    assert len(found.problems) == len(found.documents) == 98
    assert found.more == 952
