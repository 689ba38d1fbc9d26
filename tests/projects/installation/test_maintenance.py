"""Maintenance mode refuses every change, and nothing else."""

import threading

import pytest
from django.db import connection, transaction
from django.test import Client

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import Conflict, MaintenanceMode
from flagadmin.core.installation import state
from flagadmin.core.installation.models import Installation
from groups.access import Caller
from groups.login.links import create_login_link
from projects.installation.actions import set_maintenance
from projects.models import Flag, TagType
from projects.tokens.start_up import create_init_tokens
from tests.support.cast import client, make_token, make_user
from tests.support.for_each import for_each
from tests.support.live_server import PATIENCE

URL = "/api/admin/maintenance"
PASSWORD = "correct horse battery"


@transaction.atomic
def create_and_record():
    TagType.objects.create(name="half")
    state.check_writable()


def switch(api, is_on):
    return api["admin"].post(URL, {"enabled": is_on})


@pytest.fixture
def on(api):
    assert switch(api, True).status_code == 204


def test_maintenance_mode_is_switched_on_and_off(api):
    assert api["viewer"].get(URL).json() == {"enabled": False}
    response = switch(api, True)
    assert (response.status_code, response.content) == (204, b"")
    assert api["viewer"].get(URL).json() == {"enabled": True}
    assert switch(api, True).status_code == 204
    assert switch(api, False).status_code == 204
    assert api["viewer"].get(URL).json() == {"enabled": False}
    events = AuditEvent.objects.filter(type="setting-updated").order_by("id")
    assert [(event.actor_name, event.subject, event.after) for event in events] == [
        ("admin", "maintenance mode", {"is_in_maintenance": True}),
        ("admin", "maintenance mode", {"is_in_maintenance": False}),
    ]


@for_each("body", [{}, {"enabled": None}, {"enabled": "maybe"}, {"enabled": []}, []])
def test_a_body_without_a_boolean_is_refused(api, body):
    assert api["admin"].post(URL, body).status_code == 400


class TestWhileItIsOn:
    @for_each(
        ("method", "path", "body"),
        [
            ("post", "projects", {"id": "fresh", "name": "Fresh"}),
            ("post", "projects/shop/features", {"name": "new"}),
            ("post", "tag-types", {"name": "team"}),
            ("post", "user-admin", {"username": "anna"}),
            ("post", "user/tokens", {"description": "laptop"}),
            ("post", "ui-config/cors", {"frontendApiOrigins": ["*"]}),
            (
                "post",
                "features-batch/import",
                {
                    "project": "shop",
                    "environment": "production",
                    "data": {"features": [{"name": "new"}], "featureStrategies": [], "tagTypes": []},
                },
            ),
        ],
    )
    def test_changes_are_refused(self, api, on, method, path, body):
        response = getattr(api["admin"], method)(f"/api/admin/{path}", body)
        assert response.status_code == 503
        assert response.json()["name"] == "ServiceUnavailableError"
        assert "Maintenance mode is on" in response.json()["message"]
        assert response["Retry-After"] == "60"

    def test_refusals_are_no_errors_in_the_log(self, api, on, caplog):
        caplog.set_level("INFO", logger="flagadmin.http")
        api["admin"].post("/api/admin/tag-types", {"name": "team"})
        ours = [entry for entry in caplog.records if entry.name.startswith("flagadmin")]
        assert ours
        assert {entry.levelname for entry in ours} == {"INFO"}

    def test_nothing_is_half_written(self, api, on):
        with pytest.raises(MaintenanceMode):
            create_and_record()
        assert not TagType.objects.filter(name="half").exists()
        assert not Flag.objects.exists()

    def test_reading_evaluating_exporting_and_sdks_go_on(self, api, on):
        assert api["viewer"].get("/api/admin/projects").status_code == 200
        body = {"environment": "production", "context": {}}
        assert api["viewer"].post("/api/admin/playground", body).status_code == 200
        export = {"environment": "production", "project": "shop"}
        assert api["viewer"].post("/api/admin/features-batch/export", export).status_code == 200
        sdk = client(make_token("backend", environment="production"))
        assert sdk.get("/api/client/features").status_code == 200

    def test_logging_in_goes_on_and_ends_it(self, people, on):
        make_user("anna", password=PASSWORD, root_role=1)
        browser = Client()
        assert browser.post("/login/", {"username": "anna", "password": PASSWORD}).status_code == 302
        page = browser.get("/installation/")
        assert "Maintenance mode is on." in page.text
        assert browser.post("/installation/maintenance", {"enabled": "no"}).status_code == 302
        assert not Installation.objects.get().is_in_maintenance

    def test_links_log_in_and_a_server_starts(self, people, on):
        assert Client().post(create_login_link(people["admin"])).status_code == 302
        secret = "*:production." + "a" * 56
        assert create_init_tokens({"INIT_CLIENT_API_TOKENS": secret}) == 1

    def test_forms_say_why(self, browse, on):
        page = browse("admin").post("/access/groups/new/", {"name": "Team"})
        assert page.status_code == 503
        assert "Maintenance mode is on" in page.text


def test_who_sees_the_page_and_no_banner_without_it(browse):
    assert "Maintenance mode is on" not in browse("viewer").get("/").text
    assert browse("admin").get("/installation/").status_code == 200
    for name in ("editor", "viewer", "outsider"):
        assert browse(name).get("/installation/").status_code == 403


@pytest.mark.django_db(transaction=True)
class TestConcurrently:
    def test_switching_on_waits_for_changes_that_are_being_written(self):
        begun, may_end, ended = threading.Event(), threading.Event(), []

        def change():
            with transaction.atomic():
                state.check_writable()
                begun.set()
                may_end.wait(PATIENCE)
                ended.append("change")
            connection.close()

        def switch_on():
            begun.wait(PATIENCE)
            set_maintenance(True, caller=Caller.system())
            ended.append("maintenance")
            connection.close()

        threads = [threading.Thread(target=run) for run in (change, switch_on)]
        for thread in threads:
            thread.start()
        begun.wait(PATIENCE)
        threads[1].join(0.3)
        assert ended == []
        may_end.set()
        for thread in threads:
            thread.join(PATIENCE)
        assert ended == ["change", "maintenance"]
        with pytest.raises(MaintenanceMode), transaction.atomic():
            state.check_writable()

    def test_a_change_that_does_not_end_is_not_awaited_for_ever(self, monkeypatch):
        monkeypatch.setattr(state, "WAIT", "100ms")
        begun, may_end = threading.Event(), threading.Event()

        def change():
            with transaction.atomic():
                state.check_writable()
                begun.set()
                may_end.wait(PATIENCE)
            connection.close()

        thread = threading.Thread(target=change)
        thread.start()
        begun.wait(PATIENCE)
        with pytest.raises(Conflict):
            set_maintenance(True, caller=Caller.system())
        may_end.set()
        thread.join(PATIENCE)
        state.forget()
        assert not state.is_in_maintenance()
