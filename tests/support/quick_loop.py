"""An event loop whose time passes at once whenever nothing is left to do."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class _Selector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.elapsed = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(None if timeout is None else 0)
        if not ready and timeout:
            self.elapsed += timeout
        return ready


class QuickLoop(asyncio.SelectorEventLoop):
    """Timers run in their order, and what is given to a thread runs at once. What waits for sockets must not have timers."""

    def __init__(self) -> None:
        self._passing = _Selector()
        super().__init__(self._passing)

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future = self.create_future()
        future.set_result(func(*args))
        return future

    def time(self) -> float:
        return self._passing.elapsed


def run_quickly(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """In a thread of its own: this one may have the loop of a browser's tests."""

    def run() -> None:
        with asyncio.Runner(loop_factory=QuickLoop) as runner:
            runner.run(work())

    with ThreadPoolExecutor(1) as thread:
        thread.submit(run).result()
