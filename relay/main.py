"""Runs a relay: one process, one event loop."""

import asyncio
import functools
import logging
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from granian.constants import HTTPModes, Interfaces
from granian.server.embed import Server

from flagadmin.core.errors import AppError
from flagadmin.core.server.event_streams import OTHERS, raise_limit
from flagadmin.core.server.loop_routes import repeat
from flagadmin.core.server.memory import settle
from flagadmin.core.server.slow_clients import HTTP1, end_slow_requests, watch_readers
from relay.application import Application
from relay.copy import Copy, Listening
from relay.health import MAX_STREAMS, Health, Presence, Streams
from relay.http import Request
from relay.options import Options, read_options
from relay.reports import Reports
from relay.storage import DirectoryInUse, Storage
from relay.tokens import Answer, Ask, Tokens, Upstream, UpstreamFailed

log = logging.getLogger("flagadmin.relay")

THREADS = 8  # threads that call the upstream
BACKLOG = 1_024  # connections that wait to be accepted
STOP_SECONDS = 12.0  # for running requests: longer than a body may take, shorter than systemd units allow
SWITCH = 0.0005  # seconds for which a thread may delay the event loop, instead of Python's 5 ms
CONNECTIONS = 512  # served at the same time, in addition to streams


def main(arguments: Sequence[str]) -> None:
    options = read_options(arguments)
    sys.setswitchinterval(SWITCH)
    raise_limit(MAX_STREAMS + OTHERS)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        storage = Storage(options.data)
    except (OSError, DirectoryInUse) as error:
        sys.exit(f"The data directory cannot be used: {error}")
    try:
        asyncio.run(_run(options, storage))
    finally:
        storage.close()


class Relay:
    """The parts of a relay."""

    def __init__(self, options: Options, storage: Storage, ask: Ask) -> None:
        self._options = options
        self._tokens = Tokens(storage, ask, covering=options.tokens if options.is_strict else ())
        self._copy = Copy(storage, ask, self._tokens, interval=options.poll)
        self.reports = Reports(storage, ask, self._tokens, interval=options.report)
        health = Health(options, storage, self._tokens, self._copy, self.reports)
        self.streams = Streams(self._tokens, self._copy)
        self._presence = Presence(options, storage, ask, self._tokens, health, self.reports, self.streams)
        self.application = Application(
            self._tokens, self._copy, self.reports, self.streams, health, self._presence, options.origins
        )

    def list_tasks(self) -> tuple[Callable[[], Coroutine[Any, Any, None]], ...]:
        """The tasks that run beside requests, from start to end."""
        options = self._options
        return (
            functools.partial(_learn, self._tokens, options.tokens),
            self._copy.keep_current,
            self.reports.keep_sending,
            self.streams.keep_alive,
            self.streams.watch_clock,
            self._presence.keep_telling,
            watch_readers,
            end_slow_requests,
            functools.partial(_load_rest, self.application),
            Listening(options.upstream, options.upstream_headers, self._tokens, self._copy).run,
        )


async def _run(options: Options, storage: Storage) -> None:
    upstream = Upstream(
        options.upstream,
        timeout=options.timeout,
        name=options.region or "relay",
        headers=options.upstream_headers,
        connections=THREADS,
    )
    threads = ThreadPoolExecutor(THREADS, thread_name_prefix="upstream")
    loop = asyncio.get_running_loop()

    async def ask(method: str, path: str, **more: Any) -> Answer:
        return await loop.run_in_executor(threads, functools.partial(upstream.ask, method, path, **more))

    Request.is_behind_proxy = options.is_behind_proxy
    relay = Relay(options, storage, ask)
    serving = _serve(options, relay)
    tasks = [loop.create_task(repeat(task)) for task in relay.list_tasks()]
    log.info("Relay of %s at http://%s:%d", options.upstream, options.host, options.port)
    try:
        await serving
    except asyncio.CancelledError:
        log.warning("Clients that did not read their answers were cut off")
    finally:
        for task in tasks:
            task.cancel()
        await _send_last(relay.reports, options.timeout)
        threads.shutdown(wait=False, cancel_futures=True)


def _serve(options: Options, relay: Relay) -> asyncio.Task[None]:
    """Serves until a signal ends it."""
    loop = asyncio.get_running_loop()
    server = Server(
        relay.application,
        address=options.host,
        port=options.port,
        interface=Interfaces.RSGI,
        # Granian waits without limit to tell HTTP/1 from HTTP/2.
        http=HTTPModes.http1,
        http1_settings=HTTP1,
        websockets=False,
        backlog=BACKLOG,
        backpressure=CONNECTIONS + MAX_STREAMS,
    )
    serving = loop.create_task(server.serve())

    def stop() -> None:
        relay.streams.end()
        server.stop()
        loop.call_later(STOP_SECONDS, serving.cancel)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    return serving


async def _load_rest(application: Application) -> None:
    await application.load_intake()
    settle()


async def _learn(tokens: Tokens, secrets: Sequence[str]) -> None:
    """Asks about the tokens of the command line until the upstream has answered."""
    waiting = [secret for secret in secrets if tokens.get(secret) is None]
    while waiting:
        try:
            await tokens.ask_about(waiting)
        except UpstreamFailed:
            await asyncio.sleep(1)
        else:
            for secret in waiting:
                if tokens.get(secret) is None:
                    log.error("The upstream does not know a token of the command line: …%s", secret[-4:])
            return


async def _send_last(reports: Reports, seconds: float) -> None:
    """Sends the last reports. Reports that cannot be sent now are sent after the next start."""
    try:
        async with asyncio.timeout(seconds):
            await reports.send()
    except (TimeoutError, AppError):
        log.warning("Reports are kept for the next start")
