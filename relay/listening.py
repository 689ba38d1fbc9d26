"""Listens to the upstream's streams, which say at once that something has changed; polling goes on as well."""

import asyncio
import logging
import random
import threading
from collections.abc import Callable

import urllib3
from urllib3.exceptions import HTTPError

from relay.copy import Copy
from relay.tokens import BACKEND, Scope, Token, Tokens
from relay.upstream import Headers

log = logging.getLogger("flagadmin.relay")

STREAMING = "/api/client/streaming"
MAX_LISTENERS = 50  # threads
LOOK = 1.0  # seconds between two looks at which scopes there are
SILENCE = 90.0  # seconds, more than between two keep-alive comments
PAUSE = (0.5, 5.0)  # seconds until a stream that ended is opened again
WITHOUT = 600.0  # seconds until an upstream without streams is asked again


class Listening:
    """Opens a stream for each scope, in a thread of its own. ``run`` is a task of the event loop."""

    def __init__(self, address: str, headers: Headers, tokens: Tokens, copy: Copy) -> None:
        self._address = address
        self._headers = dict(headers)
        self._tokens, self._copy = tokens, copy
        self._threads: dict[Scope, threading.Thread] = {}
        self._tasks = set[asyncio.Task[None]]()
        timeout = urllib3.Timeout(connect=5.0, read=SILENCE)
        self._pool = urllib3.PoolManager(maxsize=MAX_LISTENERS, timeout=timeout, retries=False)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            for token in self._tokens.all():
                if (
                    token.kind == BACKEND
                    and token.scope not in self._threads
                    and len(self._threads) < MAX_LISTENERS
                ):
                    self._start(token, loop)
            self._threads = {scope: thread for scope, thread in self._threads.items() if thread.is_alive()}
            await asyncio.sleep(LOOK)

    def _start(self, token: Token, loop: asyncio.AbstractEventLoop) -> None:
        def tell() -> None:
            loop.call_soon_threadsafe(self._look, token)

        def look_soon() -> None:
            loop.call_soon_threadsafe(self._copy.look_soon)

        arguments = token, tell, look_soon
        thread = threading.Thread(target=self._listen, args=arguments, name="listening", daemon=True)
        self._threads[token.scope] = thread
        thread.start()

    def _look(self, token: Token) -> None:
        task = asyncio.ensure_future(self._copy.fetch(token, anew=True))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _listen(self, token: Token, tell: Callable[[], None], look_soon: Callable[[], None]) -> None:
        """Until the stream ends. Then tokens are looked at again: that may be the reason."""
        headers = self._headers | {"Authorization": token.secret, "Accept": "text/event-stream"}
        wait = random.uniform(*PAUSE)
        try:
            response = self._pool.request(
                "GET", self._address + STREAMING, headers=headers, redirect=False, preload_content=False
            )
            if response.status != 200:
                wait = WITHOUT
            else:
                for part in response.stream(65_536):
                    if b"data:" in part:
                        tell()
                look_soon()
            response.close()
        except (HTTPError, OSError, ValueError) as error:
            log.debug("A stream of the upstream ended: %s", error)
        threading.Event().wait(wait)
