"""What a request needs is removed while it waits."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from groups.models import User
from projects.models import Environment, Flag, ProjectEnvironment
from releases.models import ChangeRequest, ReleasePlan, ReleaseTemplate, Safeguard, Schedule
from releases.schedules.due import apply_due
from tests.support.cast import make_project
from tests.support.change_requests import REQUESTS, enter, sent
from tests.support.flags import make_flag
from tests.support.page_text import page_text
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db(transaction=True)
TEMPLATES = "/api/admin/release-plan-templates"
ADD = {"feature": "cart", "action": "addStrategy", "payload": {"name": "default"}}
MILESTONES = [{"name": "All", "strategies": [{"name": "default"}]}]
CHANGED = "Release template Careful has changed since this was proposed."
GONE = "Project shop has no environment production any more."


def remove_production() -> None:
    ProjectEnvironment.objects.filter(project="shop", environment="production").delete()


def test_the_page_of_a_request_opens_without_its_environment(api, browse, cart):
    made = sent(api["owner"], ADD)
    remove_production()
    page = browse("admin").get(f"/projects/shop/change-requests/{made['id']}/")
    assert page.status_code == 200
    assert "Project shop has no environment production." in page_text(page)
    assert enter(api["owner"], made, "Cancelled").status_code == 200


@pytest.fixture
def scheduled(api: Any, cart: Flag) -> Any:
    made = sent(api["owner"], ADD)
    enter(api["admin"], made, "Approved")
    at = timezone.now() + timedelta(hours=1)
    assert enter(api["admin"], made, "Scheduled", scheduledAt=at.isoformat()).status_code == 200
    return made


def test_a_forecast_says_that_a_scheduled_request_has_lost_its_environment(api, scheduled):
    remove_production()
    at = (timezone.now() + timedelta(hours=2)).isoformat()
    body = {"environment": "production", "context": {}, "at": at}
    answer = api["admin"].post("/api/admin/playground", body, format="json")
    assert answer.status_code == 200
    [note] = answer.json()["notes"]
    assert note.endswith(f"and would be suspended: {GONE}")


def test_a_scheduled_request_that_has_lost_its_environment_is_suspended(api, scheduled):
    remove_production()
    Schedule.objects.update(at=timezone.now())
    apply_due()
    schedule = Schedule.objects.get()
    assert (schedule.status, schedule.reason) == (Schedule.Status.SUSPENDED, GONE)


def add_plan(template: str) -> dict[str, Any]:
    return {"feature": "cart", "action": "addReleasePlan", "payload": {"templateId": template}}


@pytest.fixture
def template(api: Any) -> str:
    body = {"name": "Careful", "milestones": MILESTONES}
    return str(api["admin"].post(TEMPLATES, body, format="json").json()["id"])


@pytest.fixture
def planned(api: Any, cart: Flag, template: str) -> dict[str, Any]:
    """A request for a plan of the template."""
    return sent(api["owner"], add_plan(template))


def put(api: Any, template: str, **changes: Any) -> None:
    assert api["admin"].put(f"{TEMPLATES}/{template}", changes, format="json").status_code == 200


def list_changes(api: Any, made: dict[str, Any]) -> list[dict[str, Any]]:
    return api["owner"].get(f"{REQUESTS}/{made['id']}").json()["features"][0]["changes"]


def conflict(api: Any, made: dict[str, Any]) -> str | None:
    [shown] = list_changes(api, made)
    return shown.get("conflict")


def test_a_plan_of_a_template_that_is_gone_is_a_conflict(api, template, planned):
    enter(api["admin"], planned, "Approved")
    assert api["admin"].post(f"{TEMPLATES}/archive/{template}").status_code == 200
    assert conflict(api, planned) == "Release template Careful is archived."
    assert api["admin"].delete(f"{TEMPLATES}/{template}").status_code == 200
    assert conflict(api, planned) == f"Release template {template} not found."
    assert enter(api["admin"], planned, "Applied").status_code == 409


def test_a_plan_of_a_template_that_has_changed_is_a_conflict(api, template, planned):
    enter(api["admin"], planned, "Approved")
    put(api, template, description="Slow", milestones=MILESTONES)
    assert conflict(api, planned) is None
    put(api, template, milestones=[*MILESTONES, {"name": "End"}])
    assert conflict(api, planned) == CHANGED
    assert enter(api["admin"], planned, "Applied").status_code == 409
    [shown] = list_changes(api, planned)
    where = f"{REQUESTS}/{planned['id']}/changes/{shown['id']}"
    edited = api["owner"].put(where, add_plan(template), format="json")
    assert edited.json()["state"] == "In review"
    enter(api["admin"], planned, "Approved")
    assert enter(api["admin"], planned, "Applied").json()["state"] == "Applied"


def test_a_conflict_of_a_changed_template_does_not_name_who_changed_the_flag(api, template, planned):
    put(api, template, milestones=[{"name": "Other"}])
    cart_url = "/api/admin/projects/shop/features/cart"
    assert api["owner"].put(cart_url, {"description": "New"}, format="json").status_code == 200
    assert conflict(api, planned) == CHANGED


def proposed(project_id: str, environment: str, author: User, *states: str) -> None:
    for state in states:
        where = {"project_id": project_id, "environment_id": environment}
        ChangeRequest.objects.create(**where, state=state, author=author, author_name=author.username)


def test_deleting_a_project_says_that_its_requests_and_release_templates_go(browse, people):
    project = make_project("legacy")
    proposed("legacy", "production", people["owner"], "Applied", "In review", "Draft")
    ReleaseTemplate.objects.create(project=project, name="Careful")
    page = page_text(browse("admin").get("/projects/legacy/delete/"))
    assert "It removes for good: project legacy, 1 release template, and 2 change requests." in page
    assert "Release templates: Careful" in page or "Release templates Careful" in page


def test_deleting_flags_or_their_project_names_the_release_plans_that_go(browse, shop):
    flag = make_flag("cart", archived=True)
    ReleasePlan.objects.create(flag=flag, environment_id="production", name="Slow")
    page = page_text(browse("admin").get("/projects/shop/features/delete?name=cart"))
    assert "Release plan Slow (cart, production)" in page
    page = page_text(browse("admin").get("/projects/shop/delete/"))
    assert "its 1 archived flag, 1 release plan" in page
    assert "Release plans Slow (cart, production)" in page


def test_deleting_an_environment_says_that_its_requests_and_release_plans_go(browse, shop, people):
    Environment.objects.create(name="staging", type="test")
    proposed("shop", "staging", people["owner"], "Applied", "Draft")
    ReleasePlan.objects.create(flag=live_flag("cart", strategies=[]), environment_id="staging", name="Slow")
    Safeguard.objects.create(flag=Flag.objects.get(), environment_id="staging", source="alert", metric="Slow")
    page = page_text(browse("admin").get("/environments/staging/delete"))
    assert "1 release plan of flags there" in page
    assert "1 safeguard of flags there" in page
    assert "1 change request" in page
