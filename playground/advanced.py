"""The advanced form of the playground: several contexts, split from one, in several environments."""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from playground import combinations
from playground.queries import render_advanced_features
from playground.request import PlaygroundRequest, read_request
from playground.response.snapshot import ResponseSnapshot

Loaded = tuple[Mapping[str, ResponseSnapshot], list[str]]
Load = Callable[[PlaygroundRequest, int], Loaded]
"""Loads the flags of a request by environment, with notes, for this number of contexts."""


def answer_advanced(body: Any, load: Load) -> bytes:
    """Evaluates a body with the flags that `load` returns. Raises ValidationError."""
    invalid = combinations.list_invalid_properties(_read_context(body))
    query = read_request(body, several=True)
    context = {key: value for key, value in query.context.items() if key not in invalid}
    fields = combinations.split_context(context)
    snapshots, notes = load(query, combinations.count_contexts(fields))
    features = render_advanced_features(snapshots, query.environments, fields, query.at)
    answer = b'{"features":[%b],"input":%b' % (features, orjson.dumps(query.echo))
    if invalid:
        answer += b',"warnings":%b' % orjson.dumps({"invalidContextProperties": invalid})
    return answer + write_notes(notes) + b"}"


def write_notes(notes: list[str]) -> bytes:
    return b',"notes":%b' % orjson.dumps(notes) if notes else b""


def _read_context(body: Any) -> dict[str, Any]:
    """The context as sent, without the known fields, which are coerced whatever their type."""
    context = body.get("context") if isinstance(body, dict) else None
    known = {"userId", "sessionId", "remoteAddress", "environment", "appName", "currentTime"}
    sent = context.items() if isinstance(context, dict) else ()
    return {key: value for key, value in sent if key not in known}
