"""Cases of the engine through a relay, whose upstream has a project for each file."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from playground.context_body import find_time_problem
from tests.support.cases import Case, CaseFile, Result, differing
from tests.support.live_server import Client, wait_until
from tests.support.relay import Relay, relaying
from tests.support.upstream import Upstream, make_token, running

ENVIRONMENT = "default"  # a token's counts, and this is what a context has that names none


def secret_of(file: CaseFile, kind: str) -> str:
    return f"{file.name}:{ENVIRONMENT}.{kind}-secret"


class _FilesUpstream(Upstream):
    def __init__(self, files: Sequence[CaseFile]) -> None:
        super().__init__()
        self._states = {secret_of(file, "client"): file.state for file in files}
        self.add(
            *(
                make_token(secret_of(file, kind), kind, file.name, environment=ENVIRONMENT)
                for file in files
                for kind in ("client", "frontend")
            )
        )

    def answer_to(self, secret: str) -> tuple[str, bytes]:
        return f'"{secret}"', json.dumps({"version": 2} | self._states[secret]).encode()


@contextmanager
def relaying_cases(files: Sequence[CaseFile], data: Path) -> Iterator[Relay]:
    upstream = _FilesUpstream(files)
    tokens = [option for file in files for option in ("--token", secret_of(file, "client"))]
    with running(upstream), relaying(upstream.port, data, *tokens) as relay:
        for file in files:
            secret = secret_of(file, "frontend")
            wait_until(partial(_has_flags, relay, secret))
        yield relay


def _has_flags(relay: Relay, secret: str) -> bool:
    return relay.get("/api/frontend", secret)[0] == 200


def differing_through(relay: Relay, file: CaseFile) -> list[tuple[Case, Result]]:
    by_address = {flag["name"] for flag in file.state["features"] if "remoteAddress" in json.dumps(flag)}
    cases = [case for case in file.cases if _can_be_asked(case.context, case.flag in by_address)]
    with closing(Client(relay.port, secret_of(file, "frontend"))) as client:
        return differing(cases, [_ask(client, case) for case in cases])


def _can_be_asked(context: Mapping[str, Any], by_address: bool) -> bool:
    """Not with another environment than the token's, without an address (the frontend API adds it), or with a time that
    it refuses."""
    if context.get("environment", ENVIRONMENT) != ENVIRONMENT or (
        by_address and "remoteAddress" not in context
    ):
        return False
    return not find_time_problem(context.get("currentTime") or "2026-01-01T00:00:00Z")


def _ask(client: Client, case: Case) -> Result:
    status, body = client.call("POST", "/api/frontend", {"context": dict(case.context)})
    assert status == 200, (case, body)
    variants = {toggle["name"]: toggle["variant"] for toggle in json.loads(body)["toggles"]}
    variant = variants.get(case.flag)
    return variant is not None, variant["name"] if variant and variant["enabled"] else "disabled"
