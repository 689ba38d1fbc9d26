"""OpenFeature's provider for browsers listens to a real server instead of polling."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from flagadmin.core.db.bundled.cluster import Cluster
from tests.support.event_stream import listening
from tests.support.live_server import Client, reserved_port
from tests.support.openfeature import USER, other_origin
from tests.support.serve import serve, wait_until_it_answers

ADMIN = "*:*.unsafe-for-this-test-alone"
BULK = "/ofrep/v1/evaluate/flags"
FLAG = "projects/default/features/told"
ON = {"type": "boolean", "key": "told", "default": False, "context": USER}


@dataclass
class Served:
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def call(self, secret: str, method: str, path: str, body: Any = None) -> Any:
        with closing(Client(self.port, secret)) as client:
            status, answer = client.call(method, path, body)
        assert status < 300, answer
        return json.loads(answer) if answer else None

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        return self.call(ADMIN, method, f"/api/admin/{path}", body)

    def token(self) -> str:
        body = {"tokenName": "web", "type": "frontend", "environment": "development", "projects": ["default"]}
        secret: str = self.admin("POST", "api-tokens", body)["secret"]
        return secret

    def switch(self, to: str) -> None:
        self.admin("POST", f"{FLAG}/environments/development/{to}")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, install: Callable[[Path], None]) -> Iterator[Served]:
    data_dir: Path = tmp_path_factory.mktemp("events") / "data"
    install(data_dir)
    variables = {"INIT_ADMIN_API_TOKENS": ADMIN, "FLAGADMIN_LOG_LEVEL": "ERROR"}
    with reserved_port() as port, serve(data_dir, port, workers=1, **variables) as process:
        wait_until_it_answers(port, process)
        served = Served(port)
        served.admin("POST", "projects/default/features", {"name": "told"})
        yield served
        process.terminate()
        process.communicate()
    Cluster(data_dir, durable=False).stop()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with other_origin() as origin, closing(browser.new_context()) as context:
        page = context.new_page()
        page.goto(f"{origin}/page.html")
        page.wait_for_function("window.loaded")
        yield page


def test_a_change_reaches_the_page_without_polling(page: Page, served: Served) -> None:
    served.switch("off")
    headers = [["Authorization", f"Bearer {served.token()}"]]
    options = {"baseUrl": served.url, "headers": headers, "cacheMode": "disabled"}
    # It asks once more when the stream is open, for what changed meanwhile.
    with page.expect_response(lambda r: r.url.startswith(served.url + BULK) and r.status == 304):
        assert page.evaluate("([options, context]) => start(options, context)", [options, USER]) == ""
    assert page.evaluate("(asked) => ask(asked)", ON)["value"] is False
    asked: list[str] = []
    page.on("request", lambda r: asked.append(r.method))
    served.switch("on")
    page.wait_for_function("changes.includes('told')")
    assert page.evaluate("(asked) => ask(asked)", ON)["value"] is True
    assert "GET" not in asked  # the stream was not opened again


def stream_of(served: Served, secret: str) -> str:
    [stream] = served.call(secret, "POST", BULK, {})["eventStreams"]
    uri: str = stream["endpoint"]["requestUri"]
    return uri


def test_what_is_told_and_when(served: Served) -> None:
    secret = served.token()
    uri = stream_of(served, secret)
    with listening(served.port, "", path=uri) as client:
        first = client.next()
        assert (first.name, first.fields["data"]) == ("message", '{"type":"refetchEvaluation"}')
        served.admin("POST", "projects/default/features", {"name": f"flag-{first.version}"})
        assert client.next().version != first.version
        known = client.blocks[-1].version
    with listening(served.port, "", known, path=uri) as client:
        served.admin("PUT", FLAG, {"description": f"after {known}"})
        assert client.next().version != known  # nothing was told before: it was known


def test_a_date_that_is_reached_is_told(served: Served) -> None:
    """The more time there is, the longer it took to open a stream before: a busy machine may be late."""
    place = f"{FLAG}/environments/development/strategies"
    uri = stream_of(served, served.token())
    for seconds in (2, 4, 8, 16, 32):
        moment = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=seconds)
        date = {"contextName": "currentTime", "operator": "DATE_AFTER", "value": f"{moment:%FT%TZ}"}
        strategy = served.admin("POST", place, {"name": "default", "constraints": [date]})["id"]
        with listening(served.port, "", path=uri) as client:
            first = client.next()
            if in_time := datetime.now(UTC) < moment:
                assert client.next().version != first.version
                assert datetime.now(UTC) >= moment
        served.admin("DELETE", f"{place}/{strategy}")
        if in_time:
            return
    raise AssertionError("no stream was opened in time")


def test_a_stream_ends_with_its_token(served: Served) -> None:
    secret = served.token()
    with listening(served.port, "", path=stream_of(served, secret)) as client:
        client.next()
        served.admin("DELETE", f"api-tokens/{secret}")
        client.rest()
    with listening(served.port, secret, path="/ofrep/v1/events") as refused:
        assert (refused.status, refused.body()["errorCode"]) == (401, "GENERAL")
