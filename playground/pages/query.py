"""What a playground page is asked: its address read into environments, projects and contexts, and written back.

In an address, ``environment`` and ``project`` may stand several times; ``context.NAME`` is a field of the context,
``name`` and ``value`` (several times, in pairs) are fields added by hand, and ``json`` is a whole context as JSON,
which then replaces the fields (``as=json`` and ``as=fields`` turn the one into the other). A field's text may hold
several values between commas: each combination is a context of its own, as in the advanced API. Commas in JSON do that
where there are several environments, which only that API takes, and are part of a value elsewhere. Two questions in
one address have a prefix each (``a.environment``), and the projects in common. ``kept`` names a context that is too
long for an address by its digest.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import orjson
from django.http import QueryDict

from flagadmin.errors import Problem, ValidationError
from playground import combinations
from playground.engine import literals
from playground.engine.context import TOP_LEVEL
from playground.request import read_question

CONTEXT = "context."
KEPT = "kept"
MOST_COLUMNS = 12
MINUTES, SECONDS = len("2026-11-21T09:00"), len("2026-11-21T09:00:00")


@dataclass(slots=True)
class Asked:
    """One question. ``fields`` are as typed; ``contexts`` the documents to evaluate; ``projects`` None means all."""

    environments: list[str]
    projects: list[str] | None
    fields: dict[str, str]
    json: str | None = None
    contexts: list[dict[str, Any]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    kept: str = ""

    @property
    def columns(self) -> list[tuple[str, dict[str, Any]]]:
        """Each environment with each context: what is evaluated side by side."""
        return [(environment, context) for environment in self.environments for context in self.contexts]

    @property
    def several(self) -> bool:
        return len(self.environments) * len(self.contexts) > 1

    def pairs(self, prefix: str = "") -> list[tuple[str, str]]:
        """The parameters of this question's address, without the empty ones."""
        pairs = [("environment", environment) for environment in self.environments]
        pairs += [(KEPT, self.kept)] if self.kept else self.context_pairs()
        projects = [("project", project) for project in self.projects or ()]
        return [*projects, *((prefix + name, text) for name, text in pairs)]

    def context_pairs(self) -> list[tuple[str, str]]:
        """The context in full."""
        if self.json is not None:
            return [("json", self.json)]
        return [(CONTEXT + name, text) for name, text in self.fields.items()]

    def query(self, *more: tuple[str, str]) -> str:
        return urlencode([*self.pairs(), *more])

    def body(self) -> dict[str, Any]:
        """The body of the same question for the API (the advanced one where there are several)."""
        projects: Any = self.projects if self.projects is not None else "*"
        if not self.several:
            return {"environment": self.environments[0], "projects": projects, "context": self.contexts[0]}
        return {"environments": self.environments, "projects": projects, "context": _whole(self)}


def read_asked(given: QueryDict, *, default_environment: str, prefix: str = "") -> Asked:
    """Never raises: what is wrong with the context stands in ``problems``, by JSON path."""
    kept = given.get(prefix + KEPT, "")
    environments = given.getlist(f"{prefix}environment") or [default_environment]
    fields, json = dict(_fields(given, prefix)), given.get(f"{prefix}json")
    shown_as = given.get(f"{prefix}as")
    if shown_as == "json" and json is None:
        fields, json = {}, as_json(document(fields))
    elif shown_as == "fields" and json is not None:
        fields, json = _as_fields(json)
    asked = Asked(
        environments=list(dict.fromkeys(environments)),
        projects=list(dict.fromkeys(given.getlist("project"))) or None,
        fields=fields,
        json=json,
        kept="" if shown_as else kept,
    )
    if kept and not fields and json is None:
        asked.problems.append(
            Problem("context", "The context of this link is no longer stored. Enter it again.")
        )
        return asked
    try:
        asked.contexts.extend(_contexts(asked))
    except ValidationError as error:
        asked.problems.extend(error.details)
    return asked


def _fields(given: QueryDict, prefix: str) -> Iterator[tuple[str, str]]:
    for name in given:
        text = ",".join(filter(None, given.getlist(name)))
        if name.startswith(prefix + CONTEXT) and text:
            key = name.removeprefix(prefix + CONTEXT)
            yield key, _with_offset(text) if key == "currentTime" else text
    added = zip(given.getlist(f"{prefix}name"), given.getlist(f"{prefix}value"), strict=False)
    yield from ((name.strip(), value) for name, value in added if name.strip() and value)


def _with_offset(text: str) -> str:
    """A browser's time field gives no offset, and no seconds where they are none; the page calls it UTC."""
    if "T" not in text or len(text) not in (MINUTES, SECONDS):
        return text
    return f"{text}:00Z" if len(text) == MINUTES else f"{text}Z"


def _contexts(asked: Asked) -> list[dict[str, Any]]:
    """Raises ValidationError."""
    whole = _whole(asked)
    if asked.json is not None and len(asked.environments) == 1:
        return [whole]
    values = combinations.split_context(whole)
    count = combinations.count_contexts(values) * len(asked.environments)
    if count > MOST_COLUMNS:
        raise ValidationError.at(
            "context", f"These are {count} combinations side by side; the page shows at most {MOST_COLUMNS}."
        )
    return [_understood(document(fields)) for fields in combinations.contexts(values)]


def _as_fields(json: str) -> tuple[dict[str, str], str | None]:
    """The fields of a context that was typed as JSON; where it cannot be read, it stays what it is."""
    try:
        return flat(_understood(_decoded(json))), None
    except ValidationError:
        return {}, json


def as_json(context: Mapping[str, Any]) -> str:
    return orjson.dumps(context, option=orjson.OPT_INDENT_2).decode()


def _whole(asked: Asked) -> dict[str, Any]:
    """The context as it was entered, with all the values of its fields. Raises ValidationError."""
    if asked.json is not None:
        return _understood(_decoded(asked.json))
    return document(asked.fields)


def _decoded(text: str) -> Any:
    try:
        return orjson.loads(text or "{}")
    except orjson.JSONDecodeError as error:
        raise ValidationError.at(
            "json", f"Invalid JSON (line {error.lineno}, column {error.colno}): {error.msg}."
        ) from None


def _understood(context: Any) -> dict[str, Any]:
    """The context as the API understands it. Raises ValidationError."""
    return read_question({"environment": "-", "context": context}).context


def document(fields: Mapping[str, str]) -> dict[str, Any]:
    """A context document of fields: those that SDKs know at the top, the others among the properties."""
    known: dict[str, Any] = {name: text for name, text in fields.items() if name in TOP_LEVEL}
    properties = {name: text for name, text in fields.items() if name not in TOP_LEVEL}
    return known | ({"properties": properties} if properties else {})


def flat(context: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a context document."""
    return {**context.get("properties", {}), **{k: v for k, v in context.items() if k != "properties"}}


def local_time(text: str) -> str:
    """A time as a browser's time field holds it: in UTC, without its offset; "" if it is none."""
    instant = literals.instant(text)
    if instant is None:
        return ""
    try:
        return datetime.fromtimestamp(instant[0], UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError):
        return ""


def labels(columns: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """What tells the columns apart: "production · userId 42". A lone column is named by its environment."""
    environments = {environment for environment, _ in columns}
    contexts = [flat(context) for _, context in columns]
    varying = [
        name
        for name in dict.fromkeys(name for context in contexts for name in context)
        if len({context.get(name) for context in contexts}) > 1
    ]
    found = []
    for (environment, _), context in zip(columns, contexts, strict=True):
        parts = [environment] if len(environments) > 1 or not varying else []
        parts += [f"{name} {context[name]}" if name in context else f"no {name}" for name in varying]
        found.append(" · ".join(parts))
    return found
