"""Splits a question into parts, each with the URL of the results without it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from playground.pages.query import PlaygroundQuery


class Part(NamedTuple):
    """``href`` is "" for what cannot be left out alone."""

    text: str
    href: str


def list_removals(
    query: PlaygroundQuery, url: Callable[[PlaygroundQuery], str]
) -> list[tuple[str, list[Part]]]:
    """The values of the context, and the environments."""
    names = query.environments
    environments = [
        Part(name, url(replace(query, environments=[other for other in names if other != name])))
        if len(names) > 1
        else Part(name, "")
        for name in names
    ]
    values = [Part("JSON", "")] if query.json is not None else list(_list_values(query, url))
    return [("Context", values), ("Evaluate in", environments)]


def _list_values(query: PlaygroundQuery, url: Callable[[PlaygroundQuery], str]) -> Iterator[Part]:
    for name, text in query.fields.items():
        values = text.split(",")
        for value in values:
            rest = ",".join(other for other in values if other != value)
            fields = {key: rest if key == name else other for key, other in query.fields.items()}
            without = replace(query, fields={key: other for key, other in fields.items() if other})
            yield Part(f"{name} {value}", "" if query.kept else url(without))
