"""The playground's form: environments, projects, context fields, saved contexts, and the current values."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from flagadmin.core.errors import Problem
from groups.access import Caller
from playground.models import SavedContext
from playground.pages.query import (
    AT,
    CONTEXT,
    KEPT,
    SECONDS,
    PlaygroundQuery,
    as_json,
    flatten_context,
    format_local_time,
    nest_context,
)
from projects.models import ContextField, Environment, Project

SAVED, LOADED = "saved", "loaded"
MAX_OFFERED = 200
OF_CONTEXT = ("json", "name", "value", "as", KEPT, SAVED, LOADED)


@dataclass(frozen=True, slots=True)
class SavedChoices:
    """The names that the form offers. ``loaded`` is the name whose context the form contains."""

    names: list[str]
    loaded: str
    more: bool


def offer_saved(caller: Caller, query: PlaygroundQuery) -> SavedChoices:
    """Finds the names to offer. Two queries."""
    contexts = SavedContext.objects.readable_by(caller)
    names = list(contexts.values_list("name", flat=True)[: MAX_OFFERED + 1])
    loaded = ""
    if names and len(query.contexts) == 1 and query.contexts[0]:
        same_contexts = contexts.filter(context=query.contexts[0])
        loaded = same_contexts.values_list("name", flat=True).first() or ""
    offered = names[:MAX_OFFERED]
    if loaded and loaded not in offered:
        offered.append(loaded)
    return SavedChoices(offered, loaded, len(names) > MAX_OFFERED)


def fill_with_saved(
    parameters: QueryDict, caller: Caller, prefix: str = ""
) -> tuple[QueryDict, list[Problem]]:
    """The parameters with the chosen saved context, and the problems of the choice.

    A form that has just been filled with a saved context still names it as ``loaded``, so that changes to its fields
    are kept.
    """
    name = parameters.get(prefix + SAVED, "")
    if name in ("", parameters.get(prefix + LOADED)):
        return parameters, []
    saved = SavedContext.objects.readable_by(caller).filter(name=name).first()
    if saved is None:
        return parameters, [Problem(SAVED, f"saved context {name} not found")]
    filled = parameters.copy()
    for key in parameters:
        own = key.removeprefix(prefix) if key.startswith(prefix) else ""
        if own.startswith(CONTEXT) or own in OF_CONTEXT:
            del filled[key]
    for key, text in _make_parameters(saved.context):
        filled[prefix + key] = text
    return filled, []


def _make_parameters(context: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A context as the form's fields; as JSON if they cannot represent it, because commas split values there."""
    fields = flatten_context(context)
    plain = all(name.strip() == name != "" and text and "," not in text for name, text in fields.items())
    if plain and nest_context(fields) == context:
        return [(CONTEXT + name, text) for name, text in fields.items()]
    return [("json", as_json(context))]


# Collapsed below the other fields unless a condition reads them. The environment has its own control.
LAST_FIELDS = ("sessionId", "remoteAddress", "appName", "environment")
ALWAYS = ("userId", "currentTime")
NAMED_PROJECTS = 3
MAX_OPTIONS = 500  # of all fields together; fields beyond this limit are text inputs
MAX_FIELDS = 100
FRONT_OF_A_SIDE = 6  # fields of each side of a comparison, shown next to each other
MAX_PROJECTS = 200
_NOT_IN_IDS = re.compile(r"[^\w-]")


@dataclass(frozen=True, slots=True)
class Choice:
    value: str
    label: str
    selected: bool


@dataclass(frozen=True, slots=True)
class FieldInput:
    """A field of the context. ``kind`` is text, select or time; ``used`` says whether conditions read it."""

    name: str
    id: str
    kind: str
    value: str
    options: Sequence[str] = ()
    used: bool = False
    error: str = ""

    @property
    def stands_first(self) -> bool:
        return bool(self.used or self.value or self.error or self.name in ALWAYS)


@dataclass(frozen=True, slots=True)
class ContextForm:
    """A form for one query. The compare page has two, with different prefixes."""

    prefix: str
    environments: list[Choice]
    projects: list[Choice]
    fields: list[FieldInput]
    unused: list[FieldInput]
    more_fields: int
    more_projects: int
    json: str | None
    errors: list[str]
    saved: SavedChoices | None = None
    at: FieldInput | None = None
    at_exactly: str = ""

    @property
    def key(self) -> str:
        """The prefix of this form's element ids."""
        return self.prefix.rstrip(".")

    @property
    def projects_label(self) -> str:
        selected = [choice.value for choice in self.projects if choice.selected]
        if len(selected) > NAMED_PROJECTS:
            return f"{len(selected)} projects"
        return ", ".join(selected) if selected else "All projects"


@dataclass(frozen=True, slots=True)
class FormOptions:
    """The environments, projects and fields that the caller can choose from."""

    environments: list[str]
    projects: list[tuple[str, str]]
    fields: list[ContextField]

    @property
    def default_environment(self) -> str:
        return choose_default_environment(self.environments)


def choose_default_environment(environments: list[str]) -> str:
    """The environment "production" if it exists, otherwise the first one."""
    return "production" if "production" in environments or not environments else environments[0]


def read_form_options(caller: Caller) -> FormOptions:
    """Loads the options with three queries."""
    projects = list(Project.objects.active().readable_by(caller).order_by("id").values_list("id", "name"))
    fields = ContextField.objects.usable_in(*(project for project, _ in projects))
    environments = list(Environment.objects.values_list("name", flat=True))
    return FormOptions(environments, projects, list(fields))


def make_form(
    query: PlaygroundQuery,
    options: FormOptions,
    *,
    used: Collection[str],
    prefix: str = "",
    saved: SavedChoices | None = None,
) -> ContextForm:
    """Builds the form. ``used``: the fields that the flags' conditions read, including undeclared ones."""
    errors = {problem.path.removeprefix("context."): problem.message for problem in query.problems}
    inputs = list(_make_inputs(query, options, used, errors, prefix))
    front_inputs = _select_shown(inputs)
    front = _select_front(front_inputs, most=FRONT_OF_A_SIDE if prefix else len(front_inputs))
    projects = _make_choices(options.projects, query.projects or ())
    offered = sorted(projects, key=lambda choice: not choice.selected)[:MAX_PROJECTS]
    named = {field.name for field in inputs}
    return ContextForm(
        prefix=prefix,
        environments=_make_choices(((name, name) for name in options.environments), query.environments),
        projects=offered if len(projects) > MAX_PROJECTS else projects,
        fields=front,
        unused=[field for field in front_inputs if field not in front],
        more_fields=len(inputs) - len(front_inputs),
        more_projects=len(projects) - len(offered),
        json=query.json,
        errors=[
            _describe_problem(problem)
            for problem in query.problems
            if problem.path.removeprefix("context.") not in named
        ],
        saved=saved,
        at=FieldInput(AT, f"{prefix.rstrip('.')}at", "time", query.at_text[:SECONDS]),
        at_exactly=f"{query.at_text}Z" if query.at and query.at.microsecond else "",
    )


def _select_front(shown: Sequence[FieldInput], *, most: int) -> list[FieldInput]:
    """Selects the fields that are not collapsed: all with a value, and others up to the limit."""
    first = [field for field in shown if field.stands_first]
    return [field for index, field in enumerate(first) if index < most or field.value or field.error]


def _select_shown(inputs: Sequence[FieldInput]) -> list[FieldInput]:
    """Selects at most MAX_FIELDS, in their order. Fields with a value take precedence, then used ones."""
    if len(inputs) <= MAX_FIELDS:
        return list(inputs)
    first = sorted(
        inputs, key=lambda field: (not (field.value or field.error or field.name in ALWAYS), not field.used)
    )
    names = {field.name for field in first[:MAX_FIELDS]}
    return [field for field in inputs if field.name in names or field.value]


def _make_choices(options: Iterable[tuple[str, str]], selected: Collection[str]) -> list[Choice]:
    return [Choice(value, label, value in selected) for value, label in options]


def _make_inputs(
    query: PlaygroundQuery,
    options: FormOptions,
    used: Collection[str],
    errors: Mapping[str, str],
    prefix: str,
) -> Iterator[FieldInput]:
    """Declared fields in their order, then fields that only occur in conditions or in the URL."""
    legal = {field.name: [str(v.get("value", "")) for v in field.legal_values] for field in options.fields}
    offered = 0
    names = dict.fromkeys([*_sort_fields(legal), *sorted(used), *query.fields])
    for name in names:
        value = query.fields.get(name, "")
        choices = legal.get(name, [])
        choices = choices if offered + len(choices) <= MAX_OPTIONS else []
        offered += len(choices)
        # A select cannot show several values, or a value that is no longer legal.
        kind = (
            "time" if name == "currentTime" else "select" if choices and value in ("", *choices) else "text"
        )
        yield FieldInput(
            name=name,
            id=f"{prefix.rstrip('.')}field-{_NOT_IN_IDS.sub('_', name)}",
            kind=kind,
            value=(format_local_time(value) if kind == "time" and name not in errors else value),
            options=choices,
            used=name in used,
            error=errors.get(name, ""),
        )


def _sort_fields(legal: Iterable[str]) -> list[str]:
    """Sorts the fields: userId, the others in their order, the time, then the fields of LAST_FIELDS."""
    names = [name for name in legal if name not in ALWAYS and name not in LAST_FIELDS]
    return ["userId", *names, "currentTime", *(name for name in LAST_FIELDS if name in legal)]


def _describe_problem(problem: Problem) -> str:
    if problem.path == AT:
        return f"Flags as of: {problem.message}"
    return str(problem) if problem.path not in ("", "json", "context", SAVED) else problem.message
