"""JSON Schemas (draft 2020-12) of payloads: which are accepted, and how payloads are checked within bounds.

A schema refers only to itself, so that nothing is fetched. RE2 matches its patterns, in linear time. All steps of a
check are counted, because references can make a small schema take exponential time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from itertools import islice
from typing import Any

import orjson
from jsonschema import Draft202012Validator, SchemaError, ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from flagadmin.core.errors import Problem
from flagadmin.core.wording import choices, clip
from playground.engine.coercion import objects_of
from playground.engine.patterns import compile_pattern, find_fault

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAX_SCHEMA = 64_000  # bytes
MAX_PAYLOAD = 100_000  # characters
MAX_DEPTH = 30
MAX_STEPS = 1_000_000
"""Of all payloads of an action; it takes about 2 s."""
MAX_SHOWN = 5
"""Problems of one payload."""
MAX_MESSAGE = 200
UNSUPPORTED = ("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties")


class _TooCostly(Exception):
    pass


_steps_left: ContextVar[int] = ContextVar("steps_left")
Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


def _counted(keyword: Keyword) -> Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        left = _steps_left.get() - 1 - (len(value) if isinstance(value, list | dict) else 0)
        _steps_left.set(left)
        if left < 0:
            raise _TooCostly
        yield from keyword(validator, value, instance, schema) or ()

    return check


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not compile_pattern(pattern).search(instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any
) -> Iterator[ValidationError]:
    for pattern, inner in patterns.items() if isinstance(instance, dict) else ():
        for name, value in instance.items():
            if compile_pattern(pattern).search(name):
                yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    patterns = [compile_pattern(pattern) for pattern in schema.get("patternProperties", ())]
    named = schema.get("properties", ())
    extra = [name for name in instance if name not in named and not any(p.search(name) for p in patterns)]
    if allowed is False and extra:
        yield ValidationError(f"has unknown members: {choices(extra, limit=5)}")
    elif isinstance(allowed, dict):
        for name in extra:
            yield from validator.descend(instance[name], allowed, path=name)


def _unique_items(validator: Any, unique: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if unique and isinstance(instance, list):
        texts = {orjson.dumps(item, option=orjson.OPT_SORT_KEYS) for item in instance}
        if len(texts) < len(instance):
            yield ValidationError("has items more than once")


_Validator: Any = extend(
    Draft202012Validator,
    {
        name: _counted(keyword)
        for name, keyword in {
            **Draft202012Validator.VALIDATORS,
            "pattern": _pattern,
            "patternProperties": _pattern_properties,
            "additionalProperties": _additional_properties,
            "uniqueItems": _unique_items,
        }.items()
    },
)


# Schemas ----------------------------------------------------------------------------------------------------


def schema_problems(schema: Any) -> Iterator[Problem]:
    """Problems of a schema, with JSON pointers into it."""
    if not isinstance(schema, dict):
        yield Problem("schema", "must be an object")
        return
    if (size := len(orjson.dumps(schema))) > MAX_SCHEMA:
        yield Problem("schema", f"must have at most {MAX_SCHEMA:,} bytes, not {size:,}")
        return
    if schema.get("$schema", DIALECT).rstrip("#") != DIALECT:
        yield Problem("schema/$schema", f"must be {DIALECT} or left out")
        return
    problems = list(_node_problems(schema, schema))
    yield from problems
    if problems:
        return
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        yield Problem(f"schema{make_pointer(error.absolute_path)}", clip(error.message, MAX_MESSAGE))


def _node_problems(schema: Mapping[str, Any], root: Any) -> Iterator[Problem]:
    waiting: list[tuple[Any, str, int]] = [(schema, "schema", 0)]
    while waiting:
        node, place, depth = waiting.pop()
        if depth > MAX_DEPTH:
            yield Problem("schema", f"must be nested at most {MAX_DEPTH} levels deep")
            return
        if isinstance(node, list):
            waiting += [(item, f"{place}/{index}", depth + 1) for index, item in enumerate(node)]
        elif isinstance(node, dict):
            yield from _keyword_problems(node, place, root)
            waiting += [(value, f"{place}{make_pointer([key])}", depth + 1) for key, value in node.items()]


def _keyword_problems(node: Mapping[str, Any], place: str, root: Any) -> Iterator[Problem]:
    for name in UNSUPPORTED:
        if name in node and not place.endswith("/properties"):
            yield Problem(f"{place}/{name}", "is not supported")
    if isinstance(node.get("$id"), str) and place != "schema":
        yield Problem(f"{place}/$id", "is only supported at the top")
    reference = node.get("$ref")
    if isinstance(reference, str) and not _resolves(reference, root):
        yield Problem(f"{place}/$ref", "must refer to a part of this schema, such as #/$defs/price")
    patterns = node.get("patternProperties")
    listed = [("patternProperties", pattern) for pattern in patterns] if isinstance(patterns, dict) else []
    if isinstance(node.get("pattern"), str):
        listed.append(("pattern", node["pattern"]))
    for keyword, pattern in listed:
        if fault := find_fault(pattern):
            yield Problem(f"{place}/{keyword}", f"{clip(pattern)} {fault}")


def _resolves(reference: str, root: Any) -> bool:
    if not reference.startswith("#"):
        return False
    registry: Any = Registry().with_resource("", DRAFT202012.create_resource({**root, "$id": ""}))
    with suppress(Unresolvable, ValueError):
        registry.resolver().lookup(reference)
        return True
    return False


def make_pointer(path: Sequence[str | int] | Any) -> str:
    """A JSON Pointer (RFC 6901): ``/prices/0/amount``; empty for the whole document."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


# Payloads ---------------------------------------------------------------------------------------------------


class PayloadCheck:
    """Checks payloads of variants within one budget of steps."""

    def __init__(self) -> None:
        self._left = MAX_STEPS

    def problems(self, schema: Any, variants: Any, path: str) -> Iterator[Problem]:
        """Problems of the JSON payloads of variants, named after the variants below ``path``."""
        for variant in objects_of(variants):
            payload = variant.get("payload")
            if isinstance(payload, dict) and payload.get("type") == "json":
                place = f"{path}[{variant.get('name')}].payload"
                yield from self._payload_problems(schema, str(payload.get("value")), place)

    def _payload_problems(self, schema: Any, text: str, place: str) -> Iterator[Problem]:
        if len(text) > MAX_PAYLOAD:
            message = f"must have at most {MAX_PAYLOAD:,} characters with a payload schema, not {len(text):,}"
            yield Problem(place, message)
            return
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            return  # reported with the variant
        token = _steps_left.set(self._left)
        try:
            errors = list(islice(_Validator(schema, registry=Registry()).iter_errors(value), MAX_SHOWN))
            self._left = _steps_left.get()
        except (_TooCostly, RecursionError, OverflowError):
            self._left = 0
            yield Problem(place, "takes too many steps to check against the payload schema")
            return
        finally:
            _steps_left.reset(token)
        for error in errors:
            where = make_pointer(error.absolute_path) or "the payload"
            yield Problem(place, f"{where}: {clip(error.message, MAX_MESSAGE)}")
