"""Streams with the same events, by the scope of their tokens, of a worker or a relay. Knows no framework."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any

from flagadmin.core.server.event_streams import EventStream

log = logging.getLogger("flagadmin.streams")

TRY_AGAIN = 1.0  # seconds after a failed update
CONNECTED, UPDATED = "unleash-connected", "unleash-updated"
NOTHING = b'{"events":[]}'

# The next version of a stream, and the parts of the event that leads to it, if it needs one.
Step = tuple[int, tuple[bytes, ...]]


class Listener:
    """An open stream, and its current version.

    Its subscription has its ``scope``, and the client's initial ``version``.
    """

    __slots__ = ("stream", "subscription", "version")

    def __init__(self, stream: EventStream, subscription: Any) -> None:
        self.stream = stream
        self.subscription = subscription
        self.version: int | None = subscription.version


Update = Callable[[Any, Collection[Listener]], Awaitable[None]]


class ScopeStreams:
    """``update`` sends listeners of a scope the changes that they lack.

    It is called for a new stream, for all streams after a change, and for a stream that was busy then, once its
    client has read enough. It does not run twice at once for a scope, and runs again after a second if it fails. All
    methods are called in the event loop.
    """

    def __init__(self, update: Update) -> None:
        self._update = update
        self._listeners: dict[Any, set[Listener]] = {}
        self._updating: dict[Any, asyncio.Task[None]] = {}
        self._outdated: defaultdict[Any, set[Listener]] = defaultdict(set)

    def __contains__(self, scope: Any) -> bool:
        """Whether there are streams of this scope."""
        return scope in self._listeners

    def opened(self, subscription: Any, stream: EventStream) -> Callable[[], None]:
        """Adds a stream. The result removes it."""
        scope = subscription.scope
        listener = Listener(stream, subscription)
        self._listeners.setdefault(scope, set()).add(listener)
        stream.when_read = lambda: self._bring_up_to_date(scope, [listener])
        self._bring_up_to_date(scope, [listener])

        def closed() -> None:
            listeners = self._listeners[scope]
            listeners.discard(listener)
            if not listeners:
                del self._listeners[scope]

        return closed

    def bring_up_to_date(self, scope: Any) -> None:
        self._bring_up_to_date(scope, self._listeners.get(scope, ()))

    def bring_all_up_to_date(self) -> None:
        for scope in self._listeners:
            self.bring_up_to_date(scope)

    def end_invalid(self, is_valid: Callable[[Any], bool]) -> None:
        """Ends the streams whose token has changed."""
        for listeners in self._listeners.values():
            subscriptions = {listener.subscription for listener in listeners}
            invalid = {subscription for subscription in subscriptions if not is_valid(subscription)}
            for listener in listeners if invalid else ():
                if listener.subscription in invalid:
                    listener.stream.end()

    def _bring_up_to_date(self, scope: Any, listeners: Iterable[Listener]) -> None:
        self._outdated[scope].update(listeners)
        if scope not in self._updating:
            self._updating[scope] = asyncio.ensure_future(self._run_updates(scope))

    async def _run_updates(self, scope: Any) -> None:
        try:
            while outdated := self._outdated.pop(scope, None):
                still_open = outdated.intersection(self._listeners.get(scope, ()))
                listeners = [listener for listener in still_open if not listener.stream.is_busy]
                if listeners:
                    try:
                        await self._update(scope, listeners)
                    except Exception as error:  # noqa: BLE001 - whatever it is, they are told later
                        self.note_failure(error)
                        self._outdated[scope].update(listeners)
                        await asyncio.sleep(TRY_AGAIN)
        finally:
            del self._updating[scope]

    def note_failure(self, error: Exception) -> None:
        log.error("Streams could not be told of a change", exc_info=error)


def tell_changes(
    find_steps: Callable[[Any, Collection[int | None]], Awaitable[Mapping[int | None, Step]]],
) -> Update:
    """An update that sends SDKs the changes in their flags.

    ``find_steps`` computes them once for each outdated version of the streams.
    """

    async def update(scope: Any, listeners: Collection[Listener]) -> None:
        by_version: dict[int | None, list[Listener]] = defaultdict(list)
        for listener in listeners:
            by_version[listener.version].append(listener)
        for version, (next_version, event) in (await find_steps(scope, by_version.keys())).items():
            for listener in by_version[version]:
                if not listener.stream.is_busy:
                    listener.version = next_version
                    if event:
                        await listener.stream.send(*event)

    return update
