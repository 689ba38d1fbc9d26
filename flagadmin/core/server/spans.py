"""The spans sent to OpenTelemetry. Imported only if tracing is on (`flagadmin/core/server/tracing.py`)."""

import os
import threading
import time
from collections.abc import Sequence
from multiprocessing.util import Finalize
from typing import Any

import requests
from django.conf import settings
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.django import DjangoInstrumentor
from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

from flagadmin import __version__
from flagadmin.core.http import logs
from flagadmin.core.http.outside import bound, read_bounded
from flagadmin.core.metrics import process_name

# Attributes that a span may have. URLs are left out: they contain one-time links and search texts.
ATTRIBUTES = frozenset(
    {
        "client.address",
        "db.namespace",
        "db.operation.name",
        "db.query.text",
        "db.system.name",
        "error.type",
        "http.request.method",
        "http.response.status_code",
        "http.route",
        "network.protocol.version",
        "server.address",
        "server.port",
        "url.scheme",
        "user_agent.original",
    }
)
MAX_ANSWER = 1_000_000  # bytes
END_SECONDS = 5.0
FIRST_INSIDE = "flagadmin.core.http.middleware.ErrorMiddleware"  # static files are answered outside it


def begin() -> None:
    """Traces requests and their queries in this process. Call it before Django's middleware is loaded."""
    os.environ.setdefault("OTEL_SERVICE_NAME", "flagadmin")
    os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "http,database"  # the attribute names above
    resource = Resource.create({"service.version": __version__, "service.instance.id": process_name()})
    processor = BatchSpanProcessor(WithoutSecrets(make_exporter()))
    requests = TracerProvider(resource=resource)
    # Queries of tasks, several a second, belong to no request.
    queries = TracerProvider(resource=resource, sampler=ParentBased(ALWAYS_OFF))
    for provider in (requests, queries):
        provider.add_span_processor(processor)
    DjangoInstrumentor().instrument(
        tracer_provider=requests, middleware_position=settings.MIDDLEWARE.index(FIRST_INSIDE)
    )
    PsycopgInstrumentor().instrument(tracer_provider=queries)
    logs.trace_id = get_trace_id
    # multiprocessing does not call functions of atexit when a worker ends.
    Finalize(None, end, (processor,), exitpriority=0)


def make_exporter() -> OTLPSpanExporter:
    """Makes the exporter. A credential provider in OpenTelemetry's variables brings its own session."""
    is_given = any(name.endswith("_CREDENTIAL_PROVIDER") for name in os.environ)
    return OTLPSpanExporter(session=None if is_given else bound(Session()))


def end(processor: BatchSpanProcessor) -> None:
    """Sends the remaining spans, for as long as a worker may wait: OpenTelemetry's own shutdown tries for half a
    minute.
    """
    ending = threading.Thread(target=processor.shutdown, daemon=True)
    ending.start()
    ending.join(END_SECONDS)


class Session(requests.Session):
    """The session to the collector, whose answers must arrive within the exporter's timeout."""

    def request(self, *args: Any, **options: Any) -> requests.Response:
        until = time.monotonic() + options["timeout"]
        answer = super().request(*args, **options | {"stream": True})
        with answer:
            answer._content = read_bounded(answer, max_bytes=MAX_ANSWER, until=until)
        return answer


def get_trace_id() -> str:
    context = trace.get_current_span().get_span_context()
    return trace.format_trace_id(context.trace_id) if context.is_valid else ""


class WithoutSecrets(SpanExporter):
    """Drops attributes that spans must not reveal. Messages of exceptions can contain values of rows."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._exporter.export([_drop_secrets(span) for span in spans])

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def _drop_secrets(span: ReadableSpan) -> ReadableSpan:
    attributes = {
        name: logs.drop_secrets(value) if isinstance(value, str) else value
        for name, value in (span.attributes or {}).items()
        if name in ATTRIBUTES
    }
    for event in span.events:
        if exception := (event.attributes or {}).get("exception.type"):
            attributes["error.type"] = exception
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=attributes,
        kind=span.kind,
        status=trace.Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )
