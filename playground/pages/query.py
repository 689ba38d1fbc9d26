"""The URL parameters of the playground's pages: environments, projects and contexts.

- ``environment`` and ``project`` may be repeated.
- ``context.NAME`` is a field of the context. Pairs of ``name`` and ``value``, which may be repeated, are
  fields added by hand.
- ``json`` is a whole context as JSON and replaces the fields. ``as=json`` and ``as=fields`` convert one into
  the other.
- ``at`` is a moment in the past, in UTC if it has no offset. ``at-exactly`` is its value before a browser's time
  input truncated it to whole seconds.
- ``kept`` is the digest of a stored context, used when a context is too long for a URL.

A field may have several values, separated by commas: each combination is a separate context, as in the
advanced API. For JSON, this only applies to several environments, because they require the advanced API; with
one environment, a comma is part of the value.

The compare page has two queries in one URL, with prefixes (``a.environment``). They share the projects.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import urlencode

import orjson
from django.http import QueryDict

from flagadmin.core.errors import Problem, ValidationError
from groups.access import Caller
from playground import request
from playground.engine import literals
from playground.engine.context import TOP_LEVEL
from playground.models import KeptContext
from playground.request import read_moment, read_request

CONTEXT = "context."
KEPT = "kept"
AT, EXACTLY = "at", "-exactly"
MAX_COLUMNS = 12
MINUTES, SECONDS = len("2026-11-21T09:00"), len("2026-11-21T09:00:00")


@dataclass(slots=True)
class PlaygroundQuery:
    """A query to evaluate. ``fields`` are the values as entered, ``contexts`` the documents built from them.

    ``projects`` is None for all projects.
    """

    environments: list[str]
    projects: list[str] | None
    fields: dict[str, str]
    json: str | None = None
    contexts: list[dict[str, Any]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    kept: str = ""
    at: datetime | None = None

    @property
    def columns(self) -> list[tuple[str, dict[str, Any]]]:
        """The columns of the result: each environment combined with each context."""
        return [(environment, context) for environment in self.environments for context in self.contexts]

    @property
    def at_text(self) -> str:
        """The moment without its offset; "" for now."""
        return self.at.replace(tzinfo=None).isoformat() if self.at else ""

    @property
    def dated_columns(self) -> list[tuple[str, dict[str, Any]]]:
        """The columns, with the past moment beside the environment."""
        when = f" · {self.at.day} {self.at:%b %Y, %H:%M:%S} UTC" if self.at else ""
        return [(environment + when, context) for environment, context in self.columns]

    @property
    def several(self) -> bool:
        return len(self.environments) * len(self.contexts) > 1

    def pairs(self, prefix: str = "") -> list[tuple[str, str]]:
        """The query as URL parameters, without empty ones."""
        pairs = [("environment", environment) for environment in self.environments]
        pairs += [(AT, self.at_text + "Z")] if self.at else []
        pairs += [(KEPT, self.kept)] if self.kept else self.context_pairs()
        projects = [("project", project) for project in self.projects or ()]
        return [*projects, *((prefix + name, text) for name, text in pairs)]

    def context_pairs(self) -> list[tuple[str, str]]:
        """The context as URL parameters, even if it is stored."""
        if self.json is not None:
            return [("json", self.json)]
        return [(CONTEXT + name, text) for name, text in self.fields.items()]

    def urlencode(self) -> str:
        return urlencode(self.pairs())

    def body(self) -> dict[str, Any]:
        """The body of the equivalent API request; for several columns, the advanced API's."""
        projects: Any = self.projects if self.projects is not None else "*"
        at = {AT: self.at_text + "Z"} if self.at else {}
        if not self.several:
            context = self.contexts[0]
            return {"environment": self.environments[0], "projects": projects, "context": context} | at
        return {"environments": self.environments, "projects": projects, "context": _read_whole(self)} | at


def read_query(parameters: QueryDict, *, default_environment: str, prefix: str = "") -> PlaygroundQuery:
    """Reads the query from the URL. Never raises: ``problems`` lists errors in the context by JSON path."""
    kept = parameters.get(prefix + KEPT, "")
    environments = parameters.getlist(f"{prefix}environment") or [default_environment]
    fields, json = dict(_read_fields(parameters, prefix)), parameters.get(f"{prefix}json")
    shown_as = parameters.get(f"{prefix}as")
    if shown_as == "json" and json is None:
        fields, json = {}, as_json(nest_context(fields))
    elif shown_as == "fields" and json is not None:
        fields, json = _as_fields(json)
    query = PlaygroundQuery(
        environments=list(dict.fromkeys(environments)),
        projects=list(dict.fromkeys(parameters.getlist("project"))) or None,
        fields=fields,
        json=json,
        kept="" if shown_as else kept,
    )
    query.at = read_moment(add_offset(read_time(parameters, prefix + AT)), query.problems)
    if kept and not fields and json is None:
        query.problems.append(
            Problem("context", "The context of this link is no longer stored. Enter it again.")
        )
        return query
    try:
        query.contexts.extend(_make_contexts(query))
    except ValidationError as error:
        query.problems.extend(error.details)
    return query


def _read_fields(parameters: QueryDict, prefix: str) -> Iterator[tuple[str, str]]:
    for name in parameters:
        text = ",".join(filter(None, parameters.getlist(name)))
        if name.startswith(prefix + CONTEXT) and text:
            key = name.removeprefix(prefix + CONTEXT)
            yield key, add_offset(text) if key == "currentTime" else text
    added = zip(parameters.getlist(f"{prefix}name"), parameters.getlist(f"{prefix}value"), strict=False)
    yield from ((name.strip(), value) for name, value in added if name.strip() and value)


def read_time(parameters: QueryDict, name: str) -> str:
    """A moment from a time input in whole seconds: its earlier exact value, unless the user has changed it."""
    text, exactly = parameters.get(name, "").strip(), parameters.get(name + EXACTLY, "")
    return exactly if exactly[:SECONDS] == add_offset(text).removesuffix("Z") != "" else text


def add_offset(text: str) -> str:
    """Adds the offset, UTC, and the seconds: browsers' time inputs send no offset and omit zero seconds."""
    if "T" not in text or len(text) not in (MINUTES, SECONDS):
        return text
    return f"{text}:00Z" if len(text) == MINUTES else f"{text}Z"


def _make_contexts(query: PlaygroundQuery) -> list[dict[str, Any]]:
    """The context documents, one for each combination of values. Raises ValidationError."""
    whole = _read_whole(query)
    if query.json is not None and len(query.environments) == 1:
        return [whole]
    values = request.split_context(whole)
    count = request.count_contexts(values) * len(query.environments)
    if count > MAX_COLUMNS:
        raise ValidationError.at(
            "context", f"There are {count} combinations; the page shows at most {MAX_COLUMNS} side by side."
        )
    return [_coerce(nest_context(fields)) for fields in request.combine_contexts(values)]


def _as_fields(json: str) -> tuple[dict[str, str], str | None]:
    """The fields of a context entered as JSON. Invalid JSON is returned unchanged."""
    try:
        return flatten_context(_coerce(decode_json(json))), None
    except ValidationError:
        return {}, json


def as_json(context: Mapping[str, Any]) -> str:
    return orjson.dumps(context, option=orjson.OPT_INDENT_2).decode()


def _read_whole(query: PlaygroundQuery) -> dict[str, Any]:
    """The context as entered, without splitting comma-separated values. Raises ValidationError."""
    if query.json is not None:
        return _coerce(decode_json(query.json))
    return nest_context(query.fields)


def decode_json(text: str) -> Any:
    """The value of a JSON text. Raises ValidationError with the position of the error."""
    try:
        return orjson.loads(text or "{}")
    except orjson.JSONDecodeError as error:
        raise ValidationError.at(
            "json", f"Invalid JSON (line {error.lineno}, column {error.colno}): {error.msg}."
        ) from None


def _coerce(context: Any) -> dict[str, Any]:
    """The context as the API coerces it. Raises ValidationError."""
    return read_request({"environment": "-", "context": context}).context


def nest_context(fields: Mapping[str, str]) -> dict[str, Any]:
    """A context document: fields that SDKs know at the top level, all others as properties."""
    known: dict[str, Any] = {name: text for name, text in fields.items() if name in TOP_LEVEL}
    properties = {name: text for name, text in fields.items() if name not in TOP_LEVEL}
    return known | ({"properties": properties} if properties else {})


def flatten_context(context: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a context document."""
    return {**context.get("properties", {}), **{k: v for k, v in context.items() if k != "properties"}}


def format_local_time(text: str) -> str:
    """The value for a browser's time input: in UTC, without an offset; "" if the string is not a time."""
    instant = literals.read_instant(text)
    if instant is None:
        return ""
    try:
        return datetime.fromtimestamp(instant[0], UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError):
        return ""


class Label(NamedTuple):
    """The distinguishing parts of a column: its environment, and the context's varying fields."""

    environment: str
    context: str
    text: str

    @classmethod
    def of(cls, text: str) -> "Label":
        """A label with this text."""
        return cls("", text, text)


def label_columns(columns: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Label]:
    """A label for each column with its differences: "production · userId 42".

    The text of a single column is its environment.
    """
    environments = {environment for environment, _ in columns}
    contexts = [flatten_context(context) for _, context in columns]
    varying = [
        name
        for name in dict.fromkeys(name for context in contexts for name in context)
        if len({context.get(name) for context in contexts}) > 1
    ]
    labels_found = []
    for (environment, _), context in zip(columns, contexts, strict=True):
        words = " · ".join(f"{name} {context[name]}" if name in context else f"no {name}" for name in varying)
        parts = [environment] if len(environments) > 1 or not varying else []
        labels_found.append(Label(environment, words, " · ".join(filter(None, [*parts, words]))))
    return labels_found


MAX_LENGTH_IN_URL = 2_000  # characters; not all proxies and servers accept more
KEPT_FOR_EACH_USER = 20


def keep_if_long(query: PlaygroundQuery, caller: Caller) -> None:
    """Stores a long context for the caller, and deletes their oldest ones beyond KEPT_FOR_EACH_USER."""
    text = urlencode(query.context_pairs())
    if len(text) > MAX_LENGTH_IN_URL:
        query.kept = keep(text, caller)


def keep(text: str, caller: Caller) -> str:
    """Stores parameters of a URL for the caller. Returns their digest."""
    digest = sha256(text.encode()).hexdigest()
    KeptContext.objects.update_or_create(user=caller.user, digest=digest, defaults={"query": text})
    contexts = KeptContext.objects.filter(user=caller.user).order_by("-kept_at", "-pk")
    newest = list(contexts.values_list("pk", flat=True)[:KEPT_FOR_EACH_USER])
    contexts.exclude(pk__in=newest).delete()
    return digest


def restore_kept(parameters: QueryDict, prefix: str = "") -> QueryDict:
    """The URL's parameters, including the fields of a stored context that they name."""
    digest = parameters.get(prefix + KEPT, "")
    stored = KeptContext.objects.filter(digest=digest).first() if digest else None
    if stored is None:
        return parameters
    full = parameters.copy()
    for name, values in QueryDict(stored.query).lists():
        full.setlist(prefix + name, values)
    return full


class Part(NamedTuple):
    """``href`` is "" for a part that cannot be removed alone."""

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
