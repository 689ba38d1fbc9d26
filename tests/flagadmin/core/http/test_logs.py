"""The log: one id for the answer, the error and every line of a request, and the access log."""

import json
import logging
from typing import Any

import pytest
from django.db import OperationalError

from flagadmin import rsgi
from flagadmin.core.http.logs import JsonFormatter
from tests.support.cast import client
from tests.support.event_loop import ask, run, scope
from tests.support.polling import HOST

ID = "trace-12345678"


def lines(caplog: pytest.LogCaptureFixture, logger: str) -> list[dict[str, Any]]:
    return [json.loads(JsonFormatter().format(record)) for record in caplog.records if record.name == logger]


def test_an_error_has_the_id_of_its_request(api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    response = api["admin"].get("/api/admin/projects/nosuch/overview", headers={"X-Request-Id": ID})
    assert (response.status_code, response["X-Request-Id"], response.json()["id"]) == (404, ID, ID)
    assert ID in caplog.text


def test_djangos_own_lines_have_the_id_too(
    api, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Django logs a server error after all middleware has ended."""
    monkeypatch.setattr("projects.projects.api.ProjectViewSet.list", lambda *_: 1 / 0)
    response = api["admin"].get("/api/admin/projects", headers={"X-Request-Id": ID})
    assert (response.status_code, response.json()["id"]) == (500, ID)
    assert [line["requestId"] for line in lines(caplog, "django.request")] == [ID]


def test_an_outage_is_one_line_for_each_request(
    api, settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr("projects.projects.api.ProjectViewSet.list", refuse)
    assert api["admin"].get("/api/admin/projects").status_code == 503
    assert [(record.name, record.levelname) for record in caplog.records] == [("flagadmin.http", "WARNING")]
    # FLAGADMIN_LOG_LEVEL holds for loggers with a level of their own, too.
    assert settings.LOGGING["handlers"]["stderr"]["level"] == settings.LOG_LEVEL


def test_a_body_refused_by_the_event_loop_has_an_id(settings) -> None:
    async def refuse() -> Any:
        headers = (HOST, ("Content-Length", "2000000"), ("X-Request-Id", ID))
        return await ask(rsgi.Application(), scope("POST", "/api/admin/projects", headers))

    status, headers, body = run(refuse)
    assert (status, dict(headers)["x-request-id"], json.loads(body)["id"]) == (413, ID, ID)


def test_no_access_log_by_default(api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    api["admin"].get("/api/admin/projects")
    assert lines(caplog, "flagadmin.access") == []


@pytest.mark.parametrize(
    ("caller", "path", "expected"),
    [
        (
            "admin",
            "/api/admin/projects",
            {"route": "api/admin/projects", "status": 200, "caller": "personal"},
        ),
        ("nobody", "/api/admin/projects", {"route": "api/admin/projects", "status": 401, "caller": ""}),
        ("admin", "/nosuch", {"route": "none", "status": 404, "caller": ""}),
    ],
)
def test_the_access_log_has_a_line_for_each_request(
    api, settings, caplog: pytest.LogCaptureFixture, caller: str, path: str, expected: dict[str, Any]
) -> None:
    settings.ACCESS_LOG = True
    caplog.set_level(logging.INFO)
    api[caller].get(f"{path}?query=secret", headers={"X-Request-Id": ID})
    [line] = lines(caplog, "flagadmin.access")
    assert line.items() >= {**expected, "method": "GET", "address": "127.0.0.1", "requestId": ID}.items()
    assert line["duration_ms"] > 0
    assert "secret" not in json.dumps(line)


def test_the_access_log_says_that_a_person_was_logged_in(browse, settings, caplog) -> None:
    settings.ACCESS_LOG = True
    caplog.set_level(logging.INFO)
    browse("viewer").get("/projects/")
    client().get("/login/")
    assert [line["caller"] for line in lines(caplog, "flagadmin.access")] == ["session", ""]
