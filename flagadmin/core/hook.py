"""What apps register in ``AppConfig.ready`` for others that may not import it.

It is named by its module and name, ``releases.gate:guard``, and imported at first use: a command uses little of it, and
importing everything takes longer than the rest of its start. Workers import everything before they serve.
"""

from collections.abc import Callable
from pkgutil import resolve_name
from threading import RLock
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_importing = RLock()  # threads that import modules of one circle at the same time would see halves of them
_registered: "dict[str, Later]" = {}
_provided: "dict[str, Later]" = {}
_collections: "dict[str, list[Later]]" = {}


class Later:
    """Something to import later. Calling it calls the function that it names."""

    def __init__(self, path: str) -> None:
        self.__module__, _, self.__qualname__ = path.partition(":")
        self._object: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return (self._object or self.load())(*args, **kwargs)

    def load(self) -> Any:
        if self._object is None:
            with _importing:
                self._object = resolve_name(f"{self.__module__}:{self.__qualname__}")
        return self._object


def later(path: str) -> Later:
    """The one object for this path."""
    return _registered.setdefault(path, Later(path))


def load_all() -> None:
    """Imports everything registered so far. Raises ImportError or AttributeError for what does not exist."""
    for registered in list(_registered.values()):
        registered.load()
    for name in _provided:
        resolve_name(":".join(name.rsplit(".", 1)))


class Hook(Generic[P, R]):
    """A function that an app above may provide for apps below. Otherwise the default applies."""

    def __init__(self, name: str, default: Callable[P, R]) -> None:
        """``name`` is the dotted path of the hook itself."""
        self._name, self._default = name, default

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return (_provided.get(self._name) or self._default)(*args, **kwargs)


def provide(hook: str, path: str) -> None:
    """Provides the function with this path for the hook of that name."""
    _provided[hook] = later(path)


def add(name: str, path: str) -> None:
    """Adds something to a collection."""
    if later(path) not in (collection := _collections.setdefault(name, [])):
        collection.append(later(path))


def load_added(name: str) -> list[Any]:
    """Everything in the collection, in the order in which it was added."""
    return [added.load() for added in _collections.get(name, ())]
