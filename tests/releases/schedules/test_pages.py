"""Scheduling on the page of a request and by API: with its time and its reason, rescheduling and cancelling."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from projects.models import ProjectEnvironment
from releases.models import ChangeRequest, Schedule
from tests.support.for_each import for_each
from tests.support.page_text import page_text
from tests.support.playground import live_flag

API = "/api/admin/projects/shop/change-requests"
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def approved(shop: Any, browse: Any) -> ChangeRequest:
    """Approved, to turn cart off in production."""
    links = ProjectEnvironment.objects.filter(project="shop", environment="production")
    links.update(required_approvals=1)
    live_flag("cart", strategies=[{"name": "default"}])
    off = {"environment": "production", "enabled": "off", "confirmed": "yes", "add_to_request": "yes"}
    browse("owner").post("/projects/shop/features/cart/switch", off)
    request = ChangeRequest.objects.get()
    url = f"/projects/shop/change-requests/{request.pk}/state"
    browse("owner").post(url, {"state": "In review"})
    browse("admin").post(url, {"state": "Approved"})
    request.refresh_from_db()
    assert request.state == "Approved"
    return request


def test_the_page_schedules_reschedules_and_cancels(browse, approved):
    admin, url = browse("admin"), f"/projects/shop/change-requests/{approved.pk}/"
    assert "Apply it on" in page_text(admin.get(url))
    assert "Apply it on" not in page_text(browse("viewer").get(url))
    at = (timezone.now() + timedelta(days=2)).replace(microsecond=0)
    for moment in (at, at + timedelta(days=1)):
        admin.post(f"{url}state", {"state": "Scheduled", "at": f"{moment:%Y-%m-%dT%H:%M:%S}"})
        assert Schedule.objects.get().at == moment
    shown = page_text(admin.get(url))
    assert "Reschedule" in shown
    assert f"{moment:%H:%M} UTC), as admin" in shown
    Schedule.objects.update(status="failed", reason="Project shop is archived.")
    shown = page_text(browse("viewer").get(url))
    assert "Project shop is archived." in shown
    assert "Reschedule" not in shown
    admin.post(f"{url}state", {"state": "Approved", "was": "Scheduled"})
    approved.refresh_from_db()
    assert approved.state == "Approved"
    assert not Schedule.objects.exists()


def schedule(api: Any, request: ChangeRequest) -> None:
    body = {"state": "Scheduled", "scheduledAt": "2099-01-01T00:00:00Z"}
    assert api["admin"].put(f"{API}/{request.pk}/state", body, format="json").status_code == 200


def test_only_the_form_that_cancels_a_schedule_cancels_it(browse, api, approved):
    schedule(api, approved)
    url = f"/projects/shop/change-requests/{approved.pk}/state"
    page = page_text(browse("admin").post(url, {"state": "Approved"}, follow=True))
    assert f"Change request {approved.pk} is in state Scheduled: to approve it" in page
    assert Schedule.objects.exists()

    page = browse("admin").get(f"/projects/shop/change-requests/{approved.pk}/").text
    form = next(form for form in page.split("</form>") if "Cancel the schedule" in form)
    assert 'name="was" value="Scheduled"' in form.rpartition("<form")[2]

    url, body = f"{API}/{approved.pk}/state", {"state": "Approved"}
    refused = api["admin"].put(url, body, format="json", headers={"If-Match": '"old"'})
    assert (refused.status_code, Schedule.objects.exists()) == (412, True)


@for_each("at", ["", "soon", "2020-01-01T09:00", "2031-13-01T09:00", "9999-12-31T23:00:00-05:00"])
def test_what_is_no_time_ahead_is_refused(browse, approved, at):
    url = f"/projects/shop/change-requests/{approved.pk}/state"
    browse("admin").post(url, {"state": "Scheduled", "at": at})
    assert not Schedule.objects.exists()


@for_each("at", ["2031-03-28T02:30:00", "2031-03-28", "2031-W01-1"])
def test_a_time_without_its_offset_is_refused_by_api(api, approved, at):
    body = {"state": "Scheduled", "scheduledAt": at}
    [problem] = api["admin"].put(f"{API}/{approved.pk}/state", body, format="json").json()["details"]
    assert problem == {"path": "scheduledAt", "message": "must have its offset, as 2026-11-21T09:00:00Z has"}
    assert not Schedule.objects.exists()


def test_the_api_has_the_shapes_of_the_reference(api, approved):
    at = (timezone.now() + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    admin, state = api["admin"], f"{API}/{approved.pk}/state"
    assert admin.put(state, {"state": "Scheduled"}, format="json").status_code == 400
    body = {"state": "Scheduled", "scheduledAt": at}
    assert api["viewer"].put(state, body, format="json").status_code == 403
    scheduled = admin.put(state, body, format="json")
    assert scheduled.json()["schedule"] == {"scheduledAt": at, "status": "pending"}
    listed = [{"id": approved.pk, "environment": "production"}]
    assert admin.get(f"{API}/scheduled").json() == listed
    assert admin.get(f"{API}/scheduled?feature=cart").json() == listed
    assert admin.get(f"{API}/scheduled?feature=other").json() == []
    assert admin.get(f"{API}/count").json()["scheduled"] == 1
    back = admin.put(state, {"state": "Approved"}, format="json").json()
    assert (back["state"], "schedule" in back) == ("Approved", False)
    admin.put(state, body, format="json")
    applied = admin.put(state, {"state": "Applied"}, format="json")
    assert (applied.json()["state"], Schedule.objects.count()) == ("Applied", 0)
