"""Traces, as a collector gets them from a real server."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from flagadmin.core.server import tracing
from flagadmin.core.server.spans import WithoutSecrets, make_exporter
from tests.support.live_server import PATIENCE, Client, reserved_port
from tests.support.paths import ROOT, sources
from tests.support.serve import serve, wait_until_it_answers

ADMIN = "*:*.admin-long-secret-0001"
SECRETS = (
    b"admin-long-secret-0001",
    b"a-one-time-link",
    b"what-somebody-searches",
    b"a-users-id",
    b"a-new-flag",
)
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@dataclass
class Told:
    """What the collector got until the server had stopped, and what the server logged."""

    bodies: list[bytes]
    log: list[dict[str, Any]]
    resources: list[dict[str, str]]
    spans: list[Span]

    def of(self, route: str) -> Span:
        [found] = [span for span in self.spans if attributes(span).get("http.route") == route]
        return found


def attributes(span: Span) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


@pytest.fixture
def collector() -> Iterator[tuple[int, list[bytes]]]:
    """Its port, and the bodies that it got."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port, bodies
        server.shutdown()


@pytest.fixture
def told(tmp_path: Path, install: Callable[[Path], None], collector: tuple[int, list[bytes]]) -> Told:
    install(tmp_path)
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector[0]}",
        "OTEL_BSP_SCHEDULE_DELAY": "600000",  # ms: what arrives, arrives because the server stops
        "INIT_ADMIN_API_TOKENS": ADMIN,
    }
    with reserved_port() as port, serve(tmp_path, port, workers=1, **variables) as process:
        wait_until_it_answers(port, process)
        ask(port)
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    requests = [ExportTraceServiceRequest.FromString(body) for body in collector[1]]
    by_resource = [each for request in requests for each in request.resource_spans]
    return Told(
        bodies=collector[1],
        log=[json.loads(line) for line in said.splitlines() if line.startswith("{")],
        resources=[
            {each.key: each.value.string_value for each in one.resource.attributes} for one in by_resource
        ],
        spans=[span for one in by_resource for scope in one.scope_spans for span in scope.spans],
    )


def ask(port: int) -> None:
    given = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    flag = {"name": "a-new-flag"}
    evaluated = {"environment": "development", "projects": "*", "context": {"userId": "a-users-id"}}
    with closing(Client(port, ADMIN)) as client:
        for method, path, body, status in (
            ("POST", "/api/admin/projects/default/features", flag, 201),
            ("POST", "/api/admin/playground", evaluated, 200),
            ("GET", "/api/admin/projects/default/features/a-flag-that-does-not-exist", None, 404),
            ("GET", "/login/link/a-one-time-link/", None, 404),
            ("GET", "/api/admin/search/features?query=what-somebody-searches", None, 200),
        ):
            answered = client.call(method, path, body, **given)
            assert answered[0] == status, (path, answered)


@pytest.mark.processes
def test_a_collector_gets_requests_and_their_queries(told: Told) -> None:
    assert {one["service.name"] for one in told.resources} == {"flagadmin"}
    assert {one["service.instance.id"] for one in told.resources} <= {"worker-1", "main-1"}

    created = told.of("api/admin/projects/<str:project_id>/features")
    assert (created.trace_id.hex(), created.parent_span_id.hex()) == (TRACE, PARENT)
    assert created.kind == Span.SpanKind.SPAN_KIND_SERVER
    assert attributes(created)["http.request.method"] == "POST"
    assert attributes(created)["http.response.status_code"] == 201

    queries = [span for span in told.spans if span.parent_span_id == created.span_id]
    inserted = [attributes(span) for span in queries if span.name.startswith("INSERT")]
    assert any(
        'INTO "projects_flag"' in one["db.query.text"] and "%s" in one["db.query.text"] for one in inserted
    )

    # Tasks ask the database several times a second: these queries are of no request.
    answered = {span.span_id for span in told.spans if span.kind == Span.SpanKind.SPAN_KIND_SERVER}
    assert {span.parent_span_id for span in told.spans if span.span_id not in answered} <= answered

    for secret in SECRETS:
        assert [body for body in told.bodies if secret in body] == [], secret

    [line] = [line for line in told.log if "a-flag-that-does-not-exist" in json.dumps(line)]
    assert line["trace_id"] == TRACE


class Slow(BaseHTTPRequestHandler):
    """Answers byte by byte, in its headers or in its body, until the client has had enough."""

    part = b""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.wfile.write(b"HTTP/1.1 200 OK\r\n" + self.part)
        with suppress(OSError):
            while True:
                time.sleep(0.02)
                self.wfile.write(b"x")

    def log_message(self, *_: Any) -> None: ...


@pytest.mark.parametrize("part", [b"X-Long: ", b"Content-Length: 1000000\r\n\r\n"], ids=["headers", "body"])
def test_a_collector_that_answers_byte_by_byte_is_given_up(
    part: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Slow, "part", part)
    with ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.3")
        exporting = threading.Thread(target=make_exporter().export, args=([],), daemon=True)
        exporting.start()
        exporting.join(30)
        server.shutdown()
    assert not exporting.is_alive()


def test_messages_of_exceptions_are_left_out() -> None:
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(WithoutSecrets(memory)))
    given = {"url.full": "http://h/login/link/secret/", "db.query.text": "SELECT '*:*.0123456789abcdef'"}
    with suppress(ValueError), provider.get_tracer("t").start_as_current_span("INSERT", attributes=given):
        raise ValueError("a row (secret)")
    [found] = memory.get_finished_spans()
    assert found.attributes == {"error.type": "ValueError", "db.query.text": "SELECT '*:*.…'"}
    assert (found.status.is_ok, found.status.description, found.events) == (False, None, ())


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_variables_switch_it_on(
    variables: dict[str, str], wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert tracing.is_wanted() is wanted
    assert tracing.is_installed()


def test_nothing_of_it_is_imported_without_them() -> None:
    importing = [path for path in sources() if "opentelemetry import" in path.read_text()]
    assert importing == [ROOT / "flagadmin/core/server/spans.py"]
    begun = "import sys; from flagadmin.core.server import tracing; tracing.begin(); sys.exit('opentelemetry' in sys.modules)"
    subprocess.run([sys.executable, "-c", begun], cwd=ROOT, check=True)
