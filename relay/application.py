"""The RSGI application of a relay, with all endpoints that SDKs call."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from flagadmin.core.errors import (
    AppError,
    AuthenticationRequired,
    MethodNotAllowed,
    NoAccess,
    NotFound,
    UnknownError,
    ValidationError,
)
from flagadmin.core.server.loop_routes import Headers, Ready
from flagadmin.core.server.receiving import BodyReceiver
from flagadmin.core.server.slow_clients import answering, is_large, send_large
from relay.copy import STREAMING, Copy
from relay.health import PATH as RELAYS
from relay.health import Beginning, Health, Presence, Streams
from relay.http import (
    MAX_BODY,
    OF_REPORTS,
    Request,
    prepare,
    read_path,
    respond_answer,
    respond_body,
    respond_error,
    respond_json,
)
from relay.reports import ID_HEADER, Reports
from relay.tokens import BACKEND, FRONTEND, Token, Tokens
from sdk.delta.history import read_known_version, read_version
from sdk.evaluation.prepared import (
    Prepared,
    answer_toggle,
    answer_toggles,
    make_context,
    read_body_context,
    read_query_context,
)
from sdk.headers import HEADER, knows_segments, make_headers, make_preflight_headers
from sdk.ofrep.answers import EVENTS, PARAMETER, answer_flag, answer_flags, event_streams, read_body

log = logging.getLogger("flagadmin.relay")

Handler = Callable[[Request], Awaitable[Ready]]
Opening = Callable[[Request], Awaitable[Beginning]]
OFREP_FLAGS = "/ofrep/v1/evaluate/flags"
MAX_BYTES = 100_000_000  # of all bodies being received
_CORS = re.compile(r"/(api/(frontend|proxy)|ofrep)(/|$)")
_TOGGLE = re.compile(r"/api/(frontend|proxy)/features/")


class Application:
    """Granian calls ``__rsgi__`` for each request, in the event loop."""

    def __init__(
        self,
        tokens: Tokens,
        copy: Copy,
        reports: Reports,
        streams: Streams,
        health: Health,
        presence: Presence,
        origins: tuple[str, ...],
    ) -> None:
        self._tokens, self._copy, self._reports = tokens, copy, reports
        self._streams, self._presence, self._origins = streams, presence, origins
        self._receiver = BodyReceiver(self._check_known, MAX_BODY, lambda path: MAX_BODY, max_bytes=MAX_BYTES)
        self._intake: Any = None
        self._routes: dict[tuple[str, str], Handler] = {
            ("GET", "/api/client/features"): self.get_features,
            ("GET", "/api/client/delta"): self.get_delta,
            ("POST", "/api/client/register"): self.register,
            ("POST", "/api/client/metrics"): self.take_metrics,
            ("POST", "/api/client/metrics/bulk"): self.take_bulk,
            ("POST", RELAYS): self.take_relays,
            ("POST", "/edge/validate"): self.validate,
            ("POST", OFREP_FLAGS): self.evaluate_all,
            **health.routes,
        }
        for path in ("/api/frontend", "/api/proxy"):
            self._routes |= {
                ("GET", path): self.get_toggles,
                ("POST", path): self.get_toggles,
                ("POST", f"{path}/client/metrics"): self.take_frontend_metrics,
                ("POST", f"{path}/client/register"): self.register_frontend,
            }
        self._openings: dict[str, Opening] = {STREAMING: self.open_changes, EVENTS: self.open_refetches}
        self._paths = {path for _, path in self._routes}

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        answering.add(client := scope.client)
        try:
            await self._respond(scope, protocol)
        finally:
            answering.discard(client)

    async def _respond(self, scope: Any, protocol: Any) -> None:
        cors: Headers = []
        path = read_path(scope)
        if _CORS.match(path):
            cors = list(make_headers(scope.headers.get("origin") or "", self._origins).items())
        if scope.method == "GET" and (opening := self._openings.get(path)):
            await self._streams.serve(lambda: opening(Request(scope, b"")), scope, protocol, cors)
            return
        if cors and scope.method == "OPTIONS":
            requested = scope.headers.get("access-control-request-headers") or ""
            response = Ready(204, list(make_preflight_headers(requested).items()))
        else:
            response = await self._answer(scope, protocol)
        response = response._replace(headers=response.headers + cors)
        if is_large(response):
            await send_large(response, scope, protocol)
        else:
            protocol.response_bytes(response.status, response.headers, response.body)

    async def _answer(self, scope: Any, protocol: Any) -> Ready:
        if "content-length" not in scope.headers and "transfer-encoding" not in scope.headers:
            return await self._handle(Request(scope, b""))
        try:
            async with self._receiver.receive(scope, protocol) as body:
                return await self._handle(Request(scope, body))
        except AppError as error:
            response = respond_error(read_path(scope), error)
            response.headers.append(("connection", "close"))  # the body is not received
            return response
        except EOFError:  # the client has disconnected
            return Ready(400, [])

    async def _handle(self, request: Request) -> Ready:
        try:
            return await self._find_handler(request)(request)
        except AppError as error:
            return respond_error(request.path, error)
        except Exception:
            log.exception("A request failed")
            return respond_error(request.path, UnknownError())

    async def _check_known(self, scope: Any) -> None:
        """Refuses large bodies from clients without a valid token."""
        await self._tokens.find(Request(scope, b"").secret)

    def _find_handler(self, request: Request) -> Handler:
        path = request.path
        handler = self._routes.get((request.method, path))
        if handler is not None:
            return handler
        if request.method == "GET" and path.startswith("/api/client/features/"):
            return self.get_feature
        if request.method == "POST" and path.startswith(f"{OFREP_FLAGS}/"):
            return self.evaluate_one
        if request.method in ("GET", "POST") and _TOGGLE.match(path):
            return self.get_toggle
        if path in self._paths:
            raise MethodNotAllowed(f'Method "{request.method}" not allowed.')
        raise NotFound(f"{request.path} not found.")

    async def _find_token(self, request: Request, *kinds: str) -> Token:
        """Raises AuthenticationRequired, NoAccess and ServiceUnavailable."""
        token = await self._tokens.find(request.secret)
        if token.kind not in kinds:
            raise NoAccess.of_kind(token.kind, kinds)
        return token

    # Flags

    async def get_features(self, request: Request) -> Ready:
        flags = await self._copy.find(await self._find_token(request, BACKEND))
        knows = knows_segments(request.headers.get(HEADER.lower(), ""))
        body = flags.body(knows_segments=knows, prefix=request.parameters().get("namePrefix", ""))
        return await respond_body(request, body)

    async def get_feature(self, request: Request) -> Ready:
        flags = await self._copy.find(await self._find_token(request, BACKEND))
        name = request.path.removeprefix("/api/client/features/")
        knows = knows_segments(request.headers.get(HEADER.lower(), ""))
        if (feature := flags.feature(name, knows_segments=knows)) is None:
            raise NotFound(f"Could not find feature flag {name}")
        return respond_json(feature)

    async def get_delta(self, request: Request) -> Ready:
        token = await self._find_token(request, BACKEND)
        await self._copy.find(token)
        changes = self._copy.changes(token.scope)
        assert changes is not None
        known = read_known_version(request.headers.get("if-none-match", ""))
        return await respond_body(request, changes.events(known))

    # Streams

    async def open_changes(self, request: Request) -> Beginning:
        await self._copy.find(token := await self._find_token(request, BACKEND))
        return self._streams.begin_changes(token, read_version(request.headers.get("last-event-id", "")))

    async def open_refetches(self, request: Request) -> Beginning:
        """Opens a stream. A browser's EventSource sends a ticket instead of a header."""
        ticket = request.parameters().get(PARAMETER)
        token = (
            self._tokens.find_ticket(ticket) if ticket else await self._find_token(request, BACKEND, FRONTEND)
        )
        await self._copy.find(token)
        return self._streams.begin_refetches(token, read_version(request.headers.get("last-event-id", "")))

    # Evaluation

    async def _question(
        self, request: Request, read_fields: Callable[[Request], dict[str, Any]], *kinds: str
    ) -> tuple[Prepared, Any, Token]:
        """Reads the body only after checking the token, so that clients without one cannot make the relay
        parse anything.
        """
        token = await self._find_token(request, *kinds)
        flags = await self._copy.find(token)
        prepared = await prepare(flags)
        context = make_context(
            read_fields(request),
            environment=token.environment,
            address=request.address,
            now=datetime.now(UTC),
        )
        return prepared, context, token

    async def get_toggles(self, request: Request) -> Ready:
        prepared, context, _ = await self._question(request, _read_fields, FRONTEND)
        known = request.headers.get("if-none-match", "") if request.method == "GET" else ""
        return respond_answer(answer_toggles(prepared, context, known))

    async def get_toggle(self, request: Request) -> Ready:
        """One flag, even if it is off, as in Unleash Edge."""
        prepared, context, _ = await self._question(request, _read_fields, FRONTEND)
        return respond_answer(answer_toggle(prepared, _TOGGLE.sub("", request.path), context))

    async def evaluate_all(self, request: Request) -> Ready:
        prepared, context, token = await self._question(request, _read_ofrep_fields, BACKEND, FRONTEND)
        known = request.headers.get("if-none-match", "")
        browser, streams = token.kind == FRONTEND, event_streams(self._tokens.ticket_of(token))
        return respond_answer(answer_flags(prepared, context, known, browser=browser, streams=streams))

    async def evaluate_one(self, request: Request) -> Ready:
        prepared, context, token = await self._question(request, _read_ofrep_fields, BACKEND, FRONTEND)
        name = request.path.removeprefix(f"{OFREP_FLAGS}/")
        return respond_answer(answer_flag(prepared, name, context, browser=token.kind == FRONTEND))

    # Reports

    async def load_intake(self) -> Any:
        """`relay.intake`, loaded once the relay serves: its pydantic would take a third of the start."""
        if self._intake is None:
            self._intake = await asyncio.to_thread(import_module, "relay.intake")
        return self._intake

    async def _check_reporter(self, request: Request, kind: str, identifier: str = "") -> tuple[Token, Any]:
        """The token, and `relay.intake`. Refuses a report before parsing it if there is no room."""
        token = await self._find_token(request, kind)
        self._reports.check_room(identifier)
        return token, await self.load_intake()

    async def register(self, request: Request) -> Ready:
        token, intake = await self._check_reporter(request, BACKEND)
        self._reports.add(intake.read_registration(request, token))
        return Ready(202, [])

    async def take_metrics(self, request: Request) -> Ready:
        token, intake = await self._check_reporter(request, BACKEND)
        self._reports.add(intake.read_metrics(request, token))
        return Ready(202, [])

    async def take_bulk(self, request: Request) -> Ready:
        identifier = request.headers.get(ID_HEADER.lower(), "")[:100]
        token, intake = await self._check_reporter(request, BACKEND, identifier)
        line, problems = intake.read_bulk(request.json(OF_REPORTS), token)
        self._reports.add(line | {"id": identifier} if identifier else line)
        if problems:
            raise ValidationError.of(problems)
        return Ready(202, [])

    async def take_relays(self, request: Request) -> Ready:
        _, intake = await self._find_token(request, BACKEND), await self.load_intake()
        self._presence.take(intake.read_relays(request))
        return Ready(202, [])

    async def register_frontend(self, request: Request) -> Ready:
        token, intake = await self._check_reporter(request, FRONTEND)
        self._reports.add(intake.read_registration(request, token))
        return Ready(200, [("content-type", "text/plain")], b"OK")

    async def take_frontend_metrics(self, request: Request) -> Ready:
        token, intake = await self._check_reporter(request, FRONTEND)
        self._reports.add(intake.read_metrics(request, token))
        return Ready(200, [("content-type", "text/plain")], b"OK")

    async def validate(self, request: Request) -> Ready:
        """Validates tokens: returns the known ones, and asks the upstream about the others."""
        secrets: list[str] = (await self.load_intake()).read_tokens(request)
        questions = [self._tokens.find(secret) for secret in secrets if self._tokens.get(secret) is None]
        for failure in await asyncio.gather(*questions, return_exceptions=True):
            # A token is invalid only if the upstream says so: a relay behind this one would drop it.
            if isinstance(failure, BaseException) and not isinstance(failure, AuthenticationRequired):
                raise failure
        known = [token for secret in secrets if (token := self._tokens.get(secret))]
        return respond_json({"tokens": [token.as_document() for token in known]})


def _read_fields(request: Request) -> dict[str, Any]:
    """The context that a frontend SDK sends. Raises ValidationError."""
    if request.method == "GET":
        return read_body_context({"context": read_query_context(request.parameters())})
    return read_body_context(request.json())


def _read_ofrep_fields(request: Request) -> dict[str, Any]:
    """Raises ValidationError."""
    return read_body(request.json())
