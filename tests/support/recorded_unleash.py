"""A server on 127.0.0.1 that replays a recording of Unleash, as it was or lying."""

import json
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

Recording = dict[str, Any]
Lie = Callable[[BaseHTTPRequestHandler], bool]
"""Answers a request in its own way and returns True, or leaves it."""
ADMIN = "*:*.unleash-admin-secret"
PERSON = "user:0123456789abcdef0123456789abcdef0123456789abcdef01234567"
"""The personal token of an admin."""
EXPORT = "/api/admin/features-batch/export"


class Replay:
    """The answers of a recording. ``asked`` are the requests so far: method and path; ``written`` is for lies to fill."""

    def __init__(self, recording: Recording) -> None:
        self.address = ""
        self.server: ThreadingHTTPServer
        self.load(recording)

    def load(self, recording: Recording) -> None:
        """From now on, it has these answers, tells no lie and has not been asked."""
        self.recording = recording
        self.lie: Lie = lambda _: False
        self.asked: list[tuple[str, str]] = []
        self.written: list[tuple[str, str, Any]] = []
        self._answers: dict[tuple[str, str], tuple[int, Any]] = {}
        self._exports: dict[str, list[Any]] = {}
        secrets = {**recording["tokens"], "admin": ADMIN}
        for request in recording["requests"]:
            if request["path"] == EXPORT and "features" in request["body"]:
                self._exports.setdefault(request["body"]["environment"], []).append(request["answer"])
            elif request["method"] == "GET" and request["token"] in secrets:
                spec = request["path"] == "/api/client/features" and not request["headers"]
                key = secrets[request["token"]], request["path"] + ("?old" if spec else "")
                self._answers[key] = request["status"], request["answer"]

        self._alias_tokens()

    def edit_segments(self, **values: Any) -> None:
        """From now on, all segments have these values. The recording stays as it is."""
        key = ADMIN, "/api/admin/segments"
        status, answer = self._answers[key]
        segments = [{**segment, **values} for segment in answer["segments"]]
        self._answers[key] = status, {**answer, "segments": segments}

    def _alias_tokens(self) -> None:
        """Gives a token that was not recorded the answer of one with the same projects in the same environment."""
        listed = self._answers[ADMIN, "/api/admin/api-tokens"][1]["tokens"]
        path = "/api/client/features"
        known = {
            (*sorted(token["projects"]), token["environment"]): self._answers[token["secret"], path]
            for token in listed
            if (token["secret"], path) in self._answers
        }
        for token in listed:
            scope = (*sorted(token["projects"]), token["environment"])
            if scope in known:
                self._answers.setdefault((token["secret"], path), known[scope])

    def answer(self, method: str, path: str, token: str, body: bytes) -> tuple[int, Any]:
        if method == "POST" and path == EXPORT:
            return 200, self._export(**json.loads(body))
        token = ADMIN if token == PERSON else token
        return self._answers.get((token, path), (404, {"name": "NotFoundError", "message": path}))

    def _export(self, environment: str, features: list[str], downloadFile: bool) -> Any:
        """The flags that are asked for, of recorded exports of all flags of a project."""
        kept: dict[str, Any] = {}
        for answer in self._exports.get(environment, []):
            for member, entries in answer.items():
                if entries is None:
                    kept.setdefault(member, None)
                    continue
                of_flags = [
                    each.get("featureName") or each.get("feature") or each["name"] for each in entries
                ]
                if member in ("segments", "tagTypes", "contextFields"):
                    of_flags = features[:1] * len(entries)
                new = [each for each, name in zip(entries, of_flags, strict=True) if name in features]
                kept[member] = kept.get(member) or []
                kept[member] += [each for each in new if each not in kept[member]]
        return kept


@contextmanager
def replayed(recording: Recording) -> Iterator[Replay]:
    """Serves the recording until the end of the block."""
    replay = Replay(recording)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self.body = body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            replay.asked.append((self.command, self.path))
            is_last, self.close_connection = self.close_connection, True  # a lie may be no whole answer
            if replay.lie(self):
                return
            self.close_connection = is_last
            status, answer = replay.answer(self.command, self.path, self.headers["Authorization"], body)
            send(self, status, json.dumps(answer).encode())

        do_POST = do_PUT = do_GET

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        replay.server = server
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        replay.address = f"http://127.0.0.1:{server.server_port}"
        try:
            yield replay
        finally:
            server.shutdown()
            thread.join()


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> bool:
    handler.send_response(status)
    if handler.close_connection:
        headers["Connection"] = "close"
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)
    return True


def secured(listening: socket.socket, key: Path, certificate: Path) -> ssl.SSLSocket:
    """The same socket, for HTTPS. A client that refuses the certificate is no error of the server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context.wrap_socket(listening, server_side=True)


def path_of(handler: BaseHTTPRequestHandler) -> str:
    return urlsplit(handler.path).path
