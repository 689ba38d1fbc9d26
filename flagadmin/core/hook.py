"""Functions that an app above provides for apps below, which may not import it."""

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Hook(Generic[P, R]):
    """A function that an app above provides in ``AppConfig.ready``. Until then, the default applies."""

    def __init__(self, default: Callable[P, R]) -> None:
        self._function = default

    def provide(self, function: Callable[P, R]) -> None:
        self._function = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)
