"""Single requests to an installation with a primary database and a standby, and what it says of itself."""

import json
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.support.live_server import Client
from tests.support.load import ADMIN, SDK
from tests.support.replication import Server

METRICS = "0123456789abcdef"
FEATURES = "/api/admin/projects/default/features"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Installation:
    port: int
    primary: Server
    standby: Server

    def ask(self, secret: str, method: str, path: str, body: Any = None) -> Answer:
        with closing(Client(self.port)) as client:
            headers = {"Authorization": secret, "Content-Type": "application/json"}
            data = None if body is None else json.dumps(body).encode()
            client._connection.request(method, path, data, headers)
            response = client._connection.getresponse()
            named = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, named, response.read())

    def ready(self) -> Any:
        return json.loads(self.ask("", "GET", "/readyz").body)

    def metric(self, name: str) -> float:
        """The sum of the lines that begin so."""
        lines = self.ask(f"Bearer {METRICS}", "GET", "/metrics").body.decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    def create(self, flag: str) -> int:
        return self.ask(ADMIN, "POST", FEATURES, {"name": flag}).status

    def flags(self) -> set[str]:
        return {flag["name"] for flag in json.loads(self.ask(ADMIN, "GET", FEATURES).body)["features"]}

    def polled(self) -> set[str]:
        """The flags that an SDK gets, which must not come from memory."""
        answer = self.ask(SDK, "GET", "/api/client/features")
        assert answer.status == 200, answer.body
        assert "cache-status" not in answer.headers
        return {flag["name"] for flag in json.loads(answer.body)["features"]}
