"""The official client of the Model Context Protocol, talking to the application in this process."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Queue
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from rest_framework.test import APIClient

URL = "http://testserver/mcp"
MODES = ("2026-07-28", "legacy", "auto")
"""The revision without sessions, 2025-11-25 which begins with ``initialize``, and a client that finds out."""


class InProcess(httpx2.AsyncBaseTransport):
    """Has each request answered by a test client in the thread, and so the transaction, of the test."""

    def __init__(self) -> None:
        self.requests: Queue[tuple[httpx2.Request, bytes, Future[httpx2.Response]] | None] = Queue()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answered: Future[httpx2.Response] = Future()
        self.requests.put((request, await request.aread(), answered))
        return await asyncio.wrap_future(answered)

    def answer_all(self, client: APIClient) -> None:
        """Until there are no more."""
        while (waiting := self.requests.get()) is not None:
            request, body, answered = waiting
            answered.set_result(_answer(client, request, body))


def _answer(client: APIClient, request: httpx2.Request, body: bytes) -> httpx2.Response:
    headers = {
        f"HTTP_{name.upper().replace('-', '_')}": value
        for name, value in request.headers.items()
        if name not in ("content-type", "content-length", "host", "authorization")
    }
    kind = request.headers.get("content-type", "")
    answer = client.generic(request.method, request.url.raw_path.decode(), body, content_type=kind, **headers)
    return httpx2.Response(answer.status_code, headers=dict(answer.items()), content=answer.content)


def talk(client: APIClient, talking: Callable[[Client], Awaitable[Any]], *, mode: str = "auto") -> Any:
    """What ``talking`` returns, which is called with a connected client."""
    transport = InProcess()

    async def connect() -> Any:
        async with (
            httpx2.AsyncClient(transport=transport) as http,
            Client(streamable_http_client(URL, http_client=http), mode=mode) as connected,
        ):
            return await talking(connected)

    with ThreadPoolExecutor(1) as pool:
        talked = pool.submit(anyio.run, connect)
        talked.add_done_callback(lambda _: transport.requests.put(None))
        transport.answer_all(client)
        return talked.result()


def call(client: APIClient, tool: str, *, mode: str = "auto", error: bool = False, **arguments: Any) -> Any:
    """The answer of a tool, parsed. It must be one, or with ``error`` a refusal."""

    async def talking(connected: Client) -> Any:
        return await connected.call_tool(tool, arguments)

    result = talk(client, talking, mode=mode)
    [content] = result.content
    assert bool(result.is_error) == error, content.text
    return json.loads(content.text)
