"""A server that a relay stands before, in the test's own process: it answers what it is told to, or not at all."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson

Token = dict[str, Any]


def make_token(secret: str, kind: str, *projects: str, environment: str = "development") -> Token:
    return {"token": secret, "type": kind, "projects": list(projects), "environment": environment}


class Upstream:
    """``mode`` is "right", "hanging", "html" (every answer is a page), "refusing" (401 to flags) or an error's status."""

    def __init__(self) -> None:
        self.mode: str | int = "right"
        self.tokens: dict[str, Token] = {}
        self.features: list[dict[str, Any]] = []
        self.segments: list[dict[str, Any]] = []
        self.revision = 1
        self.reports: list[tuple[str, dict[str, Any]]] = []
        """What came in bulk, each with its id."""
        self.loses_answers = False
        """Whether reports are taken, and their senders told 500."""
        self.relays: dict[str, dict[str, Any]] = {}
        """What relays say of themselves, by their ids."""
        self.knows_relays = True
        self.asked: list[str] = []
        self.has_streams = True
        self.changed = threading.Condition()
        self.stopping = threading.Event()
        self.port = 0

    def add(self, *tokens: Token) -> None:
        for token in tokens:
            self.tokens[token["token"]] = token

    def change(self, *features: dict[str, Any]) -> None:
        with self.changed:
            self.features, self.revision = list(features), self.revision + 1
            self.changed.notify_all()

    def revoke(self, secret: str) -> None:
        with self.changed:
            del self.tokens[secret]
            self.changed.notify_all()

    def answer_to(self, secret: str) -> tuple[str, bytes]:
        """The ETag and the flags of a token."""
        token = self.tokens[secret]
        projects = token["projects"]
        features = [flag for flag in self.features if "*" in projects or flag["project"] in projects]
        etag = f'"{hash((token["environment"], *projects)) & 0xFFFFFFFF:08x}:{self.revision}:v1"'
        query = {"environment": token["environment"], "inlineSegmentConstraints": False}
        document = {"version": 2, "features": features, "query": query, "segments": self.segments}
        return etag, orjson.dumps(document | {"meta": {"revisionId": self.revision, "etag": etag}})

    def counted(self) -> dict[str, int]:
        """By flag how often it was on, each report counted once."""
        sums: dict[str, int] = {}
        for body in dict(self.reports).values():
            for metric in body["metrics"]:
                sums[metric["featureName"]] = sums.get(metric["featureName"], 0) + metric["yes"]
        return sums


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: Upstream

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, body: bytes) -> None:
        upstream, secret = self.upstream, self.headers.get("Authorization", "")
        upstream.asked.append(self.path)
        if upstream.mode == "hanging":
            upstream.stopping.wait(60)
        elif upstream.mode == "html":
            self._send(200, b"<html>Log in</html>")
        elif isinstance(upstream.mode, int):
            self._send(upstream.mode, b"{}")
        elif self.path == "/edge/validate":
            known = [upstream.tokens[s] for s in json.loads(body)["tokens"] if s in upstream.tokens]
            self._send(200, json.dumps({"tokens": known}).encode())
        elif secret not in upstream.tokens or (upstream.mode == "refusing" and "features" in self.path):
            self._send(401, b"{}")
        elif self.path == "/api/client/metrics/bulk":
            upstream.reports.append((self.headers["Flagadmin-Report-Id"], json.loads(body)))
            self._send(500 if upstream.loses_answers else 202, b"")
        elif self.path == "/api/client/relays" and upstream.knows_relays:
            upstream.relays |= {relay["id"]: relay for relay in json.loads(body)["relays"]}
            self._send(202, b"")
        elif self.path == "/api/client/streaming" and upstream.has_streams:
            self._stream()
        elif self.path == "/api/client/features":
            etag, content = upstream.answer_to(secret)
            is_known = self.headers.get("If-None-Match") == etag
            self._send(304 if is_known else 200, b"" if is_known else content, ETag=etag)
        else:
            self._send(404, b"{}")

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        secret = self.headers["Authorization"]
        event, has_changed = b'event: unleash-updated\ndata: {"events":[]}\n\n', True
        while self.upstream.mode == "right" and secret in self.upstream.tokens:
            if self.upstream.stopping.is_set():
                break
            told = event if has_changed else b":\n\n"
            self.wfile.write(b"%x\r\n%b\r\n" % (len(told), told))
            with self.upstream.changed:
                has_changed = self.upstream.changed.wait(5)
        self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client has gone."""


@contextmanager
def running(upstream: Upstream, port: int = 0) -> Iterator[Upstream]:
    handler = type("Handler", (_Handler,), {"upstream": upstream})
    server = _Server(("127.0.0.1", port), handler)
    upstream.port = server.server_address[1]
    upstream.stopping.clear()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield upstream
    finally:
        upstream.stopping.set()
        with upstream.changed:
            upstream.changed.notify_all()
        server.shutdown()
        server.server_close()
        thread.join()
