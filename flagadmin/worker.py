"""Loads what a worker runs: once, in `serve`, which forks its workers, so that no request waits for an import."""

import gc
from functools import lru_cache
from typing import Any

import django
from django.urls import get_resolver

from flagadmin.core.hook import load_added, load_all
from flagadmin.core.server.memory import settle

PATHS, MAX_LENGTH = 1_000, 200  # remembered paths, and characters of each


@lru_cache(1)
def load() -> None:
    """Imports all that requests need. Opens no connection and starts no thread, which a fork would lose."""
    gc.disable()  # until everything is loaded: collection takes a tenth of the time; `settle` enables it again
    django.setup()
    get_resolver().reverse_dict  # noqa: B018 - reading it loads all views
    remember_routes(get_resolver())
    load_all()
    for register in load_added("loop routes"):
        register()
    settle()


def remember_routes(resolver: Any) -> None:
    """Finds the views of recent paths without Django's search, which compares a path with up to 300 patterns."""
    search, remembered = resolver.resolve, lru_cache(PATHS)(resolver.resolve)
    resolver.resolve = lambda path: (remembered if len(path) <= MAX_LENGTH else search)(path)
